/**
 * FIBP without sockets: frames, bodies, states. Opcodes, bodies and causes are generated from the
 * specification.
 */
package dev.faisca.fila.internal.wire;
