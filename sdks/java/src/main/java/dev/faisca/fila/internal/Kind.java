package dev.faisca.fila.internal;

import dev.faisca.fila.internal.wire.Opcodes;

/** Operations whose items are collected into frames. Settlements go first: they free leases and credit. */
public enum Kind {
    ACK(Opcodes.ACK),
    NACK(Opcodes.NACK),
    RELEASE(Opcodes.RELEASE),
    ENQUEUE(Opcodes.ENQUEUE),
    ENQUEUE_WITH(Opcodes.ENQUEUE_WITH);

    final int opcode;

    Kind(int opcode) {
        this.opcode = opcode;
    }

    boolean enqueues() {
        return this == ENQUEUE || this == ENQUEUE_WITH;
    }
}
