package wire

// State is a connection's state, as one side sees it.
type State uint8

// Nothing but the handshake may come while a connection is opening.
const (
	Opening State = iota
	Open
	Closed
)

func (s State) String() string { return [...]string{"opening", "open", "closed"}[s] }

// Verdict is what follows from receiving an operation in a state.
type Verdict struct {
	Next    State
	Refused bool // answered with InvalidFrame by a server, ignored by a client
	Fatal   bool // the connection is closed
}

// ClientReceives judges what a client received.
func ClientReceives(state State, opcode uint8) Verdict {
	switch {
	case state == Opening && opcode == OpHandshakeOk:
		return Verdict{Next: Open}
	case state == Opening && (opcode == OpError || opcode == OpDisconnect):
		return Verdict{Next: Closed}
	case state == Open && opcode == OpDisconnect:
		return Verdict{Next: Closed}
	case state == Open && opcode != OpHandshakeOk && operations[opcode].fromServer:
		return Verdict{Next: Open}
	}
	return refused(state)
}

// ServerReceives judges what a server received.
func ServerReceives(state State, opcode uint8) Verdict {
	switch {
	case state == Opening && opcode == OpHandshake:
		return Verdict{Next: Open}
	case state == Open && opcode == OpDisconnect:
		return Verdict{Next: Closed}
	case state == Open && opcode != OpHandshake && operations[opcode].fromClient:
		return Verdict{Next: Open}
	}
	return refused(state)
}

func refused(state State) Verdict {
	return Verdict{Next: state, Refused: true, Fatal: state != Open}
}
