package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
	"testing/iotest"

	"github.com/faiscadev/fila/sdks/go/internal/vectors"
	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

type whole struct {
	Name       string
	Opcode     uint8
	Operation  string
	RequestID  uint32 `json:"request_id"`
	Body       map[string]any
	Bytes      any
	DecodeOnly bool `json:"decode_only"`
}

func load[T any](t *testing.T, name string) []T {
	t.Helper()
	var file struct {
		Vectors []T
		Rows    []T
	}
	if err := vectors.Load(name, &file); err != nil {
		t.Fatal(err)
	}
	all := append(file.Vectors, file.Rows...)
	if len(all) == 0 {
		t.Fatalf("%s holds nothing", name)
	}
	return all
}

func mustBytes(t *testing.T, v any) []byte {
	t.Helper()
	b, err := vectors.Bytes(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEveryWholeMessageEncodesAndDecodes(t *testing.T) {
	seen := map[string]bool{}
	for _, file := range []string{"control.json", "hot.json", "bulk.json", "admin.json"} {
		for _, v := range load[whole](t, file) {
			t.Run(v.Name, func(t *testing.T) {
				seen[v.Operation] = true
				frame := mustBytes(t, v.Bytes)
				wanted := wire.NewBody(v.Opcode)
				if wanted == nil || wire.Name(v.Opcode) != v.Operation {
					t.Fatalf("opcode %d is not known as %s", v.Opcode, v.Operation)
				}
				if err := vectors.Fill(wanted, v.Body); err != nil {
					t.Fatal(err)
				}
				if !v.DecodeOnly {
					body, err := wire.Encode(nil, wanted)
					if err != nil {
						t.Fatal(err)
					}
					if got := wire.AppendFrame(nil, v.Opcode, v.RequestID, body, wire.FrameBytesMax); !bytes.Equal(got, frame) {
						t.Errorf("encoded %x\nwanted %x", got, frame)
					}
				}
				m, err := wire.NewFrameReader(bytes.NewReader(frame), wire.DefaultLimits).Next()
				if err != nil {
					t.Fatal(err)
				}
				if m.Opcode != v.Opcode || m.RequestID != v.RequestID {
					t.Errorf("opcode %d, request %d", m.Opcode, m.RequestID)
				}
				got := wire.NewBody(v.Opcode)
				if err := wire.Decode(m.Body, got); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(vectors.Dump(got), vectors.Dump(wanted)) {
					t.Errorf("decoded %.300v\nwanted  %.300v", vectors.Dump(got), vectors.Dump(wanted))
				}
			})
		}
	}
	for name := range wire.Opcodes() {
		if !seen[name] {
			t.Errorf("no vector for %s", name)
		}
	}
}

func TestStreamsAreCutAndJoinedLikeTheVectors(t *testing.T) {
	type fault struct {
		RequestID uint32 `json:"request_id"`
		Fatal     bool
	}
	type stream struct {
		Name   string
		Limits struct {
			Frame   int `json:"frame_bytes_max"`
			Streams int `json:"assembly_streams_max"`
			Bytes   int `json:"assembly_bytes_max"`
		}
		Bytes    any
		Messages []struct {
			Opcode    uint8
			RequestID uint32 `json:"request_id"`
			Body      any
		}
		Errors []fault
	}
	for _, v := range load[stream](t, "streams.json") {
		data := mustBytes(t, v.Bytes)
		for how, r := range map[string]io.Reader{
			"at once":      bytes.NewReader(data),
			"byte by byte": iotest.OneByteReader(bytes.NewReader(data)),
		} {
			t.Run(v.Name+" "+how, func(t *testing.T) {
				reader := wire.NewFrameReader(r, wire.Limits{
					FrameBytes: v.Limits.Frame, AssemblyStreams: v.Limits.Streams, AssemblyBytes: v.Limits.Bytes})
				var got, wanted []string
				var faults []fault
				for {
					m, err := reader.Next()
					var broken *wire.FrameError
					if errors.As(err, &broken) {
						faults = append(faults, fault{broken.RequestID, broken.Fatal})
						if broken.Fatal {
							break
						}
						continue
					}
					if err != nil {
						break
					}
					got = append(got, fmt.Sprintf("%d %d %x", m.Opcode, m.RequestID, m.Body))
				}
				for _, m := range v.Messages {
					wanted = append(wanted, fmt.Sprintf("%d %d %x", m.Opcode, m.RequestID, mustBytes(t, m.Body)))
				}
				if !reflect.DeepEqual(got, wanted) {
					t.Errorf("messages %v\nwanted %v", got, wanted)
				}
				if len(faults)+len(v.Errors) > 0 && !reflect.DeepEqual(faults, v.Errors) {
					t.Errorf("errors %v, wanted %v", faults, v.Errors)
				}
			})
		}
	}
}

func TestMalformedBodiesAreRefusedByTheirField(t *testing.T) {
	type malformed struct {
		Name, Operation, Field string
		Opcode                 uint8
		Body                   any
	}
	for _, v := range load[malformed](t, "malformed.json") {
		t.Run(v.Name, func(t *testing.T) {
			err := wire.Decode(mustBytes(t, v.Body), wire.NewBody(v.Opcode))
			var broken *wire.BodyError
			if !errors.As(err, &broken) {
				t.Fatalf("no refusal: %v", err)
			}
			if broken.Field != v.Field {
				t.Errorf("field %q, wanted %q (%s)", broken.Field, v.Field, broken)
			}
		})
	}
}

func TestStatesFollowTheTable(t *testing.T) {
	type row struct {
		Side, State, Next string
		Receives          uint8
		Refused           *int
		Fatal             bool
	}
	states := map[string]wire.State{"opening": wire.Opening, "open": wire.Open, "closed": wire.Closed}
	for _, r := range load[row](t, "states.json") {
		judge := wire.ClientReceives
		if r.Side == "server" {
			judge = wire.ServerReceives
		}
		got := judge(states[r.State], r.Receives)
		if got.Refused != (r.Refused != nil) || got.Fatal != r.Fatal || (r.Refused == nil && got.Next.String() != r.Next) {
			t.Errorf("%s in state %s receives %s: %+v, wanted %+v", r.Side, r.State, wire.Name(r.Receives), got, r)
		}
	}
}
