// Facts about a cluster: how far an upgrade is, and commands that people use on it.
import { copyable, el, show } from "./elements.js";

/** Shows how many Machines have which version, while they are not all of the wanted one. */
export function progress(card, objects) {
  const cluster = objects.find((o) => o.kind === "Cluster");
  const rows = objects.filter((o) => o.kind !== "MachineSet" && o.versions.length && o.target && o.versions.some((v) => v.version !== o.target));
  card.hidden = rows.length === 0 && !cluster?.upgradePlan.length;
  if (card.hidden) return;
  const wanted = cluster?.target || rows[0]?.target;
  const plan = cluster?.upgradePlan ?? [];
  show(card, el("h2", {}, `Upgrade to ${wanted}`), plan.length > 1 && el("p", { class: "quiet" }, `The control plane goes through ${plan.join(", then ")}.`),
    el("ul", { class: "versions" }, rows.map((o) => {
      const all = o.versions.reduce((sum, v) => sum + v.replicas, 0);
      const done = o.versions.filter((v) => v.version === o.target).reduce((sum, v) => sum + v.replicas, 0);
      const words = o.versions.map((v) => `${v.replicas} × ${v.version}`).join(", ");
      return el("li", {}, el("span", {}, el("span", { class: "quiet" }, `${o.kind}/`), o.name), el("progress", { max: all, value: done, "aria-label": `${o.name}: ${done} of ${all} upgraded` }), el("span", {}, `${done} of ${all}`), el("span", { class: "quiet" }, words));
    })));
}

const quoted = (text) => (/^[\w./:=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Commands for a cluster, to be copied: the page itself changes nothing. */
export function commands(cluster, namespace, name, objects) {
  if (!cluster) return null;
  const [ns, it] = [quoted(namespace), quoted(name)];
  const pools = objects.filter((o) => o.kind === "MachineDeployment");
  const lines = [
    ["See it in a terminal", `clusterwright describe ${it} -n ${ns}`],
    ["Get its kubeconfig", `clusterwright get kubeconfig ${it} -n ${ns} > ${it}.kubeconfig`],
    ["Record it for others, without secrets", `clusterwright record ${it} -n ${ns} -o ${it}.yaml`],
    ["Pause it", `kubectl patch cluster ${it} -n ${ns} --type merge -p '{"spec":{"paused":true}}'`],
  ];
  if (!cluster.class) for (const pool of pools) lines.push([`Scale ${pool.name}`, `kubectl scale machinedeployment ${quoted(pool.name)} -n ${ns} --replicas=${(pool.replicas?.wanted ?? 0) + 1}`]);
  else lines.push(["Change its version or its workers", `kubectl edit cluster ${it} -n ${ns}`]);
  lines.push(["Delete it", `clusterwright delete ${it} -n ${ns}`]);
  return el("details", { id: "commands" }, el("summary", {}, "Commands"), el("dl", {}, lines.flatMap(([term, command]) => [el("dt", {}, term), el("dd", {}, copyable(command))])));
}
