package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	fila "github.com/faiscadev/fila/sdks/go"
	"github.com/faiscadev/fila/sdks/go/internal/vectors"
	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

type limits struct {
	Frame   int `json:"frame_bytes_max"`
	Streams int `json:"assembly_streams_max"`
	Bytes   int `json:"assembly_bytes_max"`
}

func body(operation string) (wire.Body, error) {
	opcode, ok := wire.Opcodes()[operation]
	if !ok {
		return nil, fmt.Errorf("no operation %q", operation)
	}
	return wire.NewBody(opcode), nil
}

func encode(r *request) (object, error) {
	b, err := body(r.Operation)
	if err != nil {
		return nil, err
	}
	values, _ := r.Body.(map[string]any)
	if err := vectors.Fill(b, values); err != nil {
		return nil, err
	}
	encoded, err := wire.Encode(nil, b)
	if err != nil {
		return nil, err
	}
	frame := wire.AppendFrame(nil, b.Opcode(), r.RequestID, encoded, wire.FrameBytesMax)
	return object{"bytes": hex.EncodeToString(frame)}, nil
}

func decode(r *request) (object, error) {
	raw, err := hex.DecodeString(r.Bytes)
	if err != nil {
		return nil, err
	}
	m, err := wire.NewFrameReader(bytes.NewReader(raw), wire.DefaultLimits).Next()
	if err != nil {
		return nil, malformed(err)
	}
	b := wire.NewBody(m.Opcode)
	if b == nil {
		return nil, malformed(fmt.Errorf("unknown %s", wire.Name(m.Opcode)))
	}
	if err := wire.Decode(m.Body, b); err != nil {
		return nil, malformed(err)
	}
	return object{"operation": wire.Name(m.Opcode), "opcode": m.Opcode, "request_id": m.RequestID, "body": vectors.Dump(b)}, nil
}

func decodeBody(r *request) (object, error) {
	b, err := body(r.Operation)
	if err != nil {
		return nil, err
	}
	text, _ := r.Body.(string)
	raw, err := hex.DecodeString(text)
	if err != nil {
		return nil, err
	}
	if err := wire.Decode(raw, b); err != nil {
		return nil, malformed(err)
	}
	return object{"body": vectors.Dump(b)}, nil
}

func decodeStream(r *request) (object, error) {
	raw, err := hex.DecodeString(r.Bytes)
	if err != nil {
		return nil, err
	}
	source := io.Reader(bytes.NewReader(raw))
	if r.Chunk > 0 {
		source = &chunked{bytes.NewReader(raw), r.Chunk}
	}
	reader := wire.NewFrameReader(source, wire.Limits{
		FrameBytes: r.Limits.Frame, AssemblyStreams: r.Limits.Streams, AssemblyBytes: r.Limits.Bytes})
	messages, faults := []object{}, []object{}
	for {
		m, err := reader.Next()
		var broken *wire.FrameError
		if errors.As(err, &broken) {
			faults = append(faults, object{"code": wire.CodeInvalidFrame, "request_id": broken.RequestID, "fatal": broken.Fatal})
			if !broken.Fatal {
				continue
			}
		}
		if err != nil {
			return object{"messages": messages, "errors": faults}, nil
		}
		messages = append(messages, object{"opcode": m.Opcode, "request_id": m.RequestID, "body": hex.EncodeToString(m.Body)})
	}
}

// chunked hands out so many bytes at a time.
type chunked struct {
	r io.Reader
	n int
}

func (c *chunked) Read(b []byte) (int, error) { return c.r.Read(b[:min(len(b), c.n)]) }

func state(r *request) (object, error) {
	for s := wire.Opening; s <= wire.Closed; s++ {
		if s.String() != r.State {
			continue
		}
		verdict := wire.ClientReceives(s, r.Receives)
		if verdict.Refused {
			return object{"refused": wire.CodeInvalidFrame, "fatal": verdict.Fatal}, nil
		}
		return object{"next": verdict.Next.String()}, nil
	}
	return nil, fmt.Errorf("no state %q", r.State)
}

func malformed(err error) error {
	return &fila.Error{Code: fila.CodeInvalidFrame, Message: err.Error()}
}
