/**
 * The Java client of the Fila message broker. Begin with {@link dev.faisca.fila.FilaClient}; what can go wrong
 * is a {@link dev.faisca.fila.FilaException}.
 */
package dev.faisca.fila;
