/**
 * The engine under the blocking and the asynchronous client: links to nodes, batching, back-pressure,
 * consumer streams. Not exported.
 */
package dev.faisca.fila.internal;
