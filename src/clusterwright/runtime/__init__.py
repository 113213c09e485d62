"""Controller machinery: clients, informers, queues, patches, the manager. It has no code for concrete kinds.

From the wire to a reconciler and back:

    http, transports     carry requests to an API server (in process: `apiserver.inprocess`); kubeconfig, credentials say where and as whom
    rest                 a client that asks every time; resources finds the path of a kind, models decodes, errors is what can go wrong
    watcher, informer    list and watch, told to a store of bytes with indexes; cache holds all informers and reads from them
    controller           changes, by predicates and mapping, become keys in a workqueue; workers hand them to a Reconciler
    finalizers, paused   the first two things that every pass does; patch the last: one diff against the object as read
    events, logging, metrics, tracing, traces, failures, backlogs, endpoints      what people and machines get to see of it
    leases, manager      who leads, and the TaskGroup that runs it all

Time, randomness and keys are arguments everywhere: clock, random.Random, keys.
"""
