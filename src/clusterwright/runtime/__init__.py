"""Controller machinery: clients, informers, queues, patches, the manager. It knows no concrete kind."""
