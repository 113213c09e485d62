"""The parts of a KubeadmConfig that are not kubeadm's: disks, files, users, time servers, Ignition."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from clusterwright.api.constraints import ATOMIC, REQUIRED, Doc, Each, Int32, Items, Len, OneOf, Props, Range
from clusterwright.api.meta import SensitiveStruct, Struct
from clusterwright.api.rules import ONE_LAYOUT, PARTITION_TYPE


class Filesystem(Struct):
    device: Annotated[str, REQUIRED, Len(1, 256), Doc("The device on which the file system is created.")] = ""
    extra_opts: Annotated[tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 256)), Doc("Further options of mkfs.")] = ()
    filesystem: Annotated[str, REQUIRED, Len(1, 128), Doc("The type of the file system.")] = ""
    label: Annotated[str, Len(1, 512), Doc("The label of the file system. `None` means without a label.")] = ""
    overwrite: Annotated[bool | None, Doc("If true, a file system that exists is overwritten.")] = None
    partition: Annotated[
        str, Len(1, 128), Doc("The partition, as cloud-init selects it: auto, any, none or a number. It is not allowed with Ignition.")
    ] = ""
    replace_fs: Annotated[str, Len(1, 128), Doc("The type of a file system that is replaced. It is not allowed with Ignition.")] = (
        msgspec.field(name="replaceFS", default="")
    )


class PartitionSpec(Struct):
    partition_type: Annotated[str, Len(1, 36), PARTITION_TYPE, Doc("The type of the partition: a known name or a GUID.")] = ""
    percentage: Annotated[Int32, REQUIRED, Range(1, 100), Doc("The share of the device, in percent.")] = 0


class Partition(Struct):
    constraints: ClassVar[tuple[object, ...]] = (ONE_LAYOUT,)

    device: Annotated[str, REQUIRED, Len(1, 256), Doc("The device that is partitioned.")] = ""
    disk_layout: Annotated[
        tuple[PartitionSpec, ...], Items(1, 100), ATOMIC, Doc("The partitions in order. The sum of their percentages is at most 100.")
    ] = ()
    layout: Annotated[bool | None, Doc("If true, one partition takes the whole device; if false, the partitions that exist are kept.")] = (
        None
    )
    overwrite: Annotated[bool | None, Doc("If true, partitions that exist are overwritten.")] = None
    table_type: Annotated[
        str, OneOf("mbr", "gpt"), Doc("The type of the partition table. If absent, it is mbr; Ignition allows only gpt.")
    ] = ""


class DiskSetup(Struct):
    """The disks of a node, with exactly one of `layout` / `diskLayout` per partition (CEL-6)."""

    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    filesystems: Annotated[tuple[Filesystem, ...], Items(None, 100), ATOMIC, Doc("The file systems that are created.")] = ()
    partitions: Annotated[tuple[Partition, ...], Items(None, 100), ATOMIC, Doc("The partitions that are created.")] = ()


class SecretFileSource(Struct):
    key: Annotated[str, REQUIRED, Len(1, 256), Doc("The key in the Secret.")] = ""
    name: Annotated[str, REQUIRED, Len(1, 253), Doc("The name of the Secret, which is in the same namespace.")] = ""


class FileSource(Struct):
    secret: Annotated[SecretFileSource, REQUIRED, Doc("A Secret.")] = SecretFileSource()


class File(SensitiveStruct):
    append: Annotated[bool | None, Doc("If true, the content is added at the end of a file that exists.")] = None
    content: Annotated[str, Len(1, 10240), Doc("The content of the file. It cannot be combined with contentFrom.")] = ""
    content_format: Annotated[
        str,
        OneOf("Raw", "Template"),
        Doc("Template means that the content is a Go template. The default is Raw, which means that it is not."),
    ] = ""
    content_from: Annotated[FileSource | None, Doc("The source of the content.")] = None
    encoding: Annotated[
        str, OneOf("base64", "gzip", "gzip+base64"), Doc("The encoding of the content. Ignition does not allow the forms with gzip.")
    ] = ""
    owner: Annotated[str, Len(1, 256), Doc("The owner of the file, as user:group.")] = ""
    path: Annotated[str, REQUIRED, Len(1, 512), Doc("The path of the file.")] = ""
    permissions: Annotated[str, Len(1, 16), Doc("The permissions of the file, as an octal number in a string.")] = ""


class ContainerLinuxConfig(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    additional_config: Annotated[str, Len(1, 32768), Doc("The configuration as YAML.")] = ""
    strict: Annotated[bool | None, Doc("If true, warnings count as errors.")] = None


class IgnitionSpec(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    container_linux_config: Annotated[
        ContainerLinuxConfig | None, Doc("A Container Linux configuration that is merged with the generated one.")
    ] = None


class NTP(Struct):
    constraints: ClassVar[tuple[object, ...]] = (Props(1),)

    enabled: Annotated[bool | None, Doc("Whether the time is synchronised.")] = None
    servers: Annotated[tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 512)), Doc("The time servers.")] = ()


class SecretPasswdSource(Struct):
    key: Annotated[str, REQUIRED, Len(1, 256), Doc("The key in the Secret.")] = ""
    name: Annotated[str, REQUIRED, Len(1, 253), Doc("The name of the Secret, which is in this namespace.")] = ""


class PasswdSource(Struct):
    secret: Annotated[SecretPasswdSource, REQUIRED, Doc("A Secret.")] = SecretPasswdSource()


class User(SensitiveStruct):
    gecos: Annotated[str, Len(1, 256), Doc("The full name of the user.")] = ""
    groups: Annotated[str, Len(1, 256), Doc("The groups of the user, as one string with commas.")] = ""
    home_dir: Annotated[str, Len(1, 256), Doc("The home directory of the user.")] = ""
    inactive: Annotated[bool | None, Doc("If true, the user is inactive. Ignition does not allow this.")] = None
    lock_password: Annotated[bool | None, Doc("If true, the user cannot log in with a password.")] = None
    name: Annotated[str, REQUIRED, Len(1, 256), Doc("The name of the user.")] = ""
    passwd: Annotated[str, Len(1, 256), Doc("The hash of the password. It cannot be combined with passwdFrom.")] = ""
    passwd_from: Annotated[PasswdSource | None, Doc("The source of the password.")] = None
    primary_group: Annotated[str, Len(1, 256), Doc("The primary group of the user.")] = ""
    shell: Annotated[str, Len(1, 256), Doc("The login shell of the user.")] = ""
    ssh_authorized_keys: Annotated[
        tuple[str, ...], Items(None, 100), ATOMIC, Each(Len(1, 2048)), Doc("The public keys with which the user may log in.")
    ] = ()
    sudo: Annotated[str, Len(1, 256), Doc("The rule for sudo.")] = ""
