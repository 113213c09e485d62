"""Bugs to plant: each is one edit of one file, and the tests that should notice. `run.py` plays them."""

from __future__ import annotations

from dataclasses import dataclass

RUNTIME = ("tests/runtime", "tests/simulation")
STORE = ("tests/apiserver/test_persistence.py", "tests/security/test_store.py", "tests/security/test_crashes.py")
LIVES = ("tests/scenarios/test_whole_plane.py", "tests/scenarios/test_lifecycle_in_virtual_time.py")


@dataclass(frozen=True)
class Bug:
    """An edit that makes a mistake. `before` occurs once in the file."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    also: tuple[str, str] = ("", "")
    """A second edit, where the code has a net below the first."""


def _bug(name: str, file: str, before: str, after: str, *tests: str, also: tuple[str, str] = ("", "")) -> Bug:
    return Bug(name, f"clusterwright/{file}", before, after, tests, also)


C = "controllers"
KCP = f"{C}/kubeadmcontrolplane"
BUGS: tuple[Bug, ...] = (
    # the runtime
    _bug("lost watch event", "runtime/watcher.py", 'case "DELETED":\n                    position.move(sink.deleted(event.object))', 'case "DELETED":\n                    pass', *RUNTIME),
    _bug("watch resumes too late", "runtime/watcher.py", "state = Listed(self._reached)", "state = Listed(str(int(self._reached or 0) + 1))", *RUNTIME),
    _bug("stale cache is read after a write without an answer", "runtime/cache.py", " or self._watchers[gvk].in_doubt:", ":", *RUNTIME),
    _bug("what a list lacks stays in the cache", "runtime/informer.py", "for key in [key for key in self._objects if key not in fresh]:\n            self._remove(key, None)", "pass", *RUNTIME),
    _bug("own writes are forgotten at once", "runtime/informer.py", "        own = self._own.get(key)\n        return self._objects.get(key) if own is None else own.entry", "        return self._objects.get(key)", *RUNTIME),
    _bug("one key worked on twice at once", "runtime/workqueue.py", "        self._dirty[key] = _Waiting(priority, [reason] if reason else [], loop.time())\n        if key not in self._processing:\n            self._push(key, priority)", "        self._dirty[key] = _Waiting(priority, [reason] if reason else [], loop.time())\n        self._push(key, priority)", *RUNTIME, also=(" or key in self._processing:\n                    continue", ":\n                    continue")),
    _bug("a pass that failed is not tried again", "runtime/controller.py", "        except Exception as error:  # one key's failure, whatever it is, must not stop the others\n            return self._failed(key, log, error)", "        except Exception:\n            return 'error'", *RUNTIME),
    _bug("patches without a lock", "runtime/patch.py", 'metadata["resourceVersion"] = self.latest.resource_version', "pass", *RUNTIME),
    _bug("leader goes on without its lease", "runtime/leases.py", "return self._renewed + self.times.renew_deadline - self._clock.monotonic()", "return self.times.renew_deadline", *RUNTIME),
    _bug("mappers are not tried again", "runtime/controller.py", "            if change.tries < _MAPPING_TRIES:", "            if False:", *RUNTIME),
    # the store and the API server
    _bug("answered before it is durable", "apiserver/storage/store.py", "        if self.journal is None or min(rv, self._written) <= self.journal.durable_rv:\n            return", "        return", *STORE),
    _bug("watchers are told before it is durable", "apiserver/storage/store.py", "            self._unpublished.append((table, event))", "            table.publish(event)", *STORE),
    _bug("checksums are not looked at", "apiserver/storage/sqlite.py", "                if is_intact(row):", "                if True:", *STORE),
    _bug("deletions are not written", "apiserver/storage/sqlite.py", 'execute("DELETE FROM objects WHERE kind = ? AND key = ?", (table, entry.key))', "pass", *STORE),
    _bug("conflicts are not noticed", "apiserver/verbs/writes.py", '    elif revision != str(entry.rv):', '    elif revision == "never":', "tests/apiserver/test_store_semantics.py", "tests/apiserver/test_conformance.py"),
    _bug("garbage with another owner alive is taken", "apiserver/system/garbage.py", "            if any(r.uid not in dropped for r in self._owners.get(place, ())):", "            if False:", "tests/apiserver"),
    _bug("every user may do everything", "apiserver/auth/rbac.py", "        return any(rule.allows(info) for rule in self._candidates(server, user, info))", "        return True", "tests/apiserver/test_auth.py", "tests/security/test_authority.py"),
    _bug("audiences do not count", "apiserver/auth/tokens.py", "return None if found is None or not found[1] else found[0]", "return None if found is None else found[0]", "tests/apiserver/test_auth.py", "tests/security/test_authority.py"),
    _bug("a kubeconfig in a Secret runs programs", "api/kubeconfig.py", "            if entry.get(asked):", "            if False:", "tests/runtime/test_kubeconfig.py", "tests/workload"),
    _bug("aliases are read", "api/yamlreader.py", '            raise Refused("aliases are not allowed")', "            pass", "tests/runtime/test_kubeconfig.py"),
    # the controllers
    _bug("Machine goes before its host", f"{C}/machine/deletion.py", "                case Removal.AWAIT_OBJECT | Removal.TRY_AGAIN | None:\n                    _mark_what_is_gone(run, state)\n", "                case Removal.AWAIT_OBJECT | Removal.TRY_AGAIN | None:\n                    run.become(without_finalizer(run.object, MACHINE_FINALIZER))\n", "tests/controllers/machine", *LIVES),
    _bug("Cluster goes before its parts", f"{C}/cluster/reconciler.py", "        if act is Deletion.REMOVE_FINALIZER:", "        if True:", "tests/controllers/cluster", *LIVES),
    _bug("one Machine too many is deleted", f"{C}/machineset/reconciler.py", "max(len(fresh) - run.done.desired, 0)", "max(len(fresh) - run.done.desired + 1, 0)", "tests/controllers/machineset", *LIVES),
    _bug("the oldest go where the newest should", f"{C}/machineset/deletion_order.py", "            return _BY_AGE - _seniority(machine, now)", "            return _seniority(machine, now)", "tests/controllers/machineset"),
    _bug("quorum is ignored", f"{KCP}/etcd/quorum.py", "self.voting - self.unhealthy >= quorum(self.voting)", "self.voting >= 0", "tests/controllers/kubeadmcontrolplane"),
    _bug("a member that joins counts as healthy", f"{KCP}/etcd/quorum.py", "        unhealthy = 1 if len(members) > 1 else 0", "        unhealthy = 0", "tests/controllers/kubeadmcontrolplane"),
    _bug("the last healthy control plane may go", f"{KCP}/etcd/quorum.py", "    return healthy >= 1", "    return healthy >= 0", "tests/controllers/kubeadmcontrolplane"),
    _bug("the init lock is everybody's", f"{C}/kubeadmconfig/init_lock.py", "        if information.machine_name == machine:", "        if True:", "tests/controllers/kubeadmconfig"),
    _bug("maxUnavailable is ignored", f"{C}/machinedeployment/rollout.py", "    return Limits(surge, min(unavailable, replicas))", "    return Limits(surge, replicas)", "tests/controllers/machinedeployment"),
    _bug("remediation has no limit", f"{C}/machinehealthcheck/limits.py", "        return self.least <= not_healthy <= self.most", "        return True", "tests/controllers/machinehealthcheck"),
)  # fmt: skip
