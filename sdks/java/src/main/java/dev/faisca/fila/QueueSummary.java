package dev.faisca.fila;

/**
 * A queue, in short.
 *
 * @param name the queue's name
 * @param depth messages that are pending
 * @param inFlight messages that are leased
 * @param activeConsumers consumers of the queue
 * @param leaderNodeId the node that leads it; 0 on a broker that stands alone
 */
public record QueueSummary(String name, long depth, long inFlight, long activeConsumers, long leaderNodeId) {}
