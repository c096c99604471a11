package dev.faisca.fila;

/**
 * What an operation on lease batches acted on.
 *
 * @param batches how many batches
 * @param messages how many messages in them
 */
public record BatchCount(long batches, long messages) {}
