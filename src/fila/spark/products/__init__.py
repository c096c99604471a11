"""Products: answers made of facts, kept as tables for whoever asks later.

    slo          was each tenant served in time; how fast its error budget burns
    chargeback   what each tenant used: messages, bytes, processing time
    capacity     arrivals, service, backlog and the limit that binds, per queue
    anomalies    tenants whose load or failures are out of their own habit
    blame        who was served while whom waited, and for how much of the wait

Every product is a function from DataFrame to DataFrame.
"""
