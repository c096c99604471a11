package main

import (
	"fmt"
	"strings"
	"unicode"
)

func opcodeFile(operations []operation) string {
	var b strings.Builder
	b.WriteString("package wire\n\n// The operations' opcodes.\nconst (\n")
	for _, o := range operations {
		if o.Opcode != nil {
			fmt.Fprintf(&b, "Op%s uint8 = 0x%02X\n", o.Name, *o.Opcode)
		}
	}
	b.WriteString(")\n\nvar operations = map[uint8]operation{\n")
	for _, o := range operations {
		if o.Opcode == nil {
			continue
		}
		reply := "0"
		if o.Reply != nil {
			reply = "Op" + *o.Reply
		}
		fmt.Fprintf(&b, "Op%s: {name: %q, fromClient: %t, fromServer: %t, reply: %s, body: func() Body { return &%s{} }},\n",
			o.Name, o.Name, o.Sender != "server", o.Sender != "client", reply, o.Name)
	}
	b.WriteString("}\n")
	return b.String()
}

func bodyFile(operations []operation) string {
	least := map[string]int{}
	for _, o := range operations {
		for _, f := range o.Fields {
			least[o.Name] += parseKind(f[1]).least()
		}
	}
	var b strings.Builder
	b.WriteString("package wire\n\n")
	for _, o := range operations {
		writeType(&b, o)
		writeEncode(&b, o)
		writeDecode(&b, o, least)
	}
	return b.String()
}

func writeType(b *strings.Builder, o operation) {
	if o.Opcode != nil {
		fmt.Fprintf(b, "// %s is the body of opcode 0x%02X.\n", o.Name, *o.Opcode)
	} else {
		fmt.Fprintf(b, "// %s is a record inside other bodies.\n", o.Name)
	}
	fmt.Fprintf(b, "type %s struct {\n", o.Name)
	for _, f := range o.Fields {
		fmt.Fprintf(b, "%s %s `wire:%q`\n", goName(f[0]), parseKind(f[1]).goType(), f[0])
	}
	b.WriteString("}\n\n")
	if o.Opcode != nil {
		fmt.Fprintf(b, "// Opcode tells which operation the body belongs to.\nfunc (*%s) Opcode() uint8 { return Op%s }\n\n", o.Name, o.Name)
	}
}

func writeEncode(b *strings.Builder, o operation) {
	if len(o.Fields) == 0 {
		fmt.Fprintf(b, "func (*%s) encode(*Encoder) {}\n\n", o.Name)
		return
	}
	fmt.Fprintf(b, "func (m *%s) encode(e *Encoder) {\n", o.Name)
	for _, f := range o.Fields {
		name, field, k := f[0], "m."+goName(f[0]), parseKind(f[1])
		switch {
		case k.counted != "":
			fmt.Fprintf(b, "e.count%s(%q, len(%s))\n", methods[k.counted], name, field)
			fmt.Fprintf(b, "for i := range %s {\n%s[i].encode(e)\n}\n", field, field)
		case k.list:
			fmt.Fprintf(b, "e.Strings(%q, %s)\n", name, field)
		case k.nullable:
			fmt.Fprintf(b, "e.Nullable(%q, %s)\n", name, field)
		case k.trailing:
			fmt.Fprintf(b, "if %s != nil {\n%s\n}\n", field, encodeCall(k.base, name, "*"+field))
		default:
			fmt.Fprintf(b, "%s\n", encodeCall(k.base, name, field))
		}
	}
	b.WriteString("}\n\n")
}

func encodeCall(base, name, value string) string {
	switch base {
	case "string", "bytes", "map":
		return fmt.Sprintf("e.%s(%q, %s)", methods[base], name, value)
	}
	return fmt.Sprintf("e.%s(%s)", methods[base], value)
}

func writeDecode(b *strings.Builder, o operation, least map[string]int) {
	if len(o.Fields) == 0 {
		fmt.Fprintf(b, "func (*%s) decode(*Decoder) {}\n\n", o.Name)
		return
	}
	fmt.Fprintf(b, "func (m *%s) decode(d *Decoder) {\n", o.Name)
	for _, f := range o.Fields {
		name, field, k := f[0], "m."+goName(f[0]), parseKind(f[1])
		switch {
		case k.counted != "":
			fmt.Fprintf(b, "%s = make([]%s, d.count%s(%q, %d))\n", field, k.base, methods[k.counted], name, least[k.base])
			fmt.Fprintf(b, "for i := range %s {\n%s[i].decode(d)\nif d.within(%q, i) {\nreturn\n}\n}\n", field, field, name)
		case k.list:
			fmt.Fprintf(b, "%s = d.Strings(%q)\n", field, name)
		case k.nullable:
			fmt.Fprintf(b, "%s = d.Nullable(%q)\n", field, name)
		case k.trailing:
			fmt.Fprintf(b, "if d.more() {\nvalue := d.%s(%q)\n%s = &value\n}\n", methods[k.base], name, field)
		default:
			fmt.Fprintf(b, "%s = d.%s(%q)\n", field, methods[k.base], name)
		}
	}
	b.WriteString("}\n\n")
}

func codeFile(causes []cause) string {
	var b strings.Builder
	b.WriteString("package wire\n\n// The error codes of results and Error frames.\nconst (\n")
	for _, c := range causes {
		fmt.Fprintf(&b, "Code%s uint8 = 0x%02X\n", c.Name, c.Code)
	}
	b.WriteString(")\n\nvar catalogue = map[uint8]Cause{\n")
	for _, c := range causes {
		fmt.Fprintf(&b, "Code%s: {Name: %q, Meaning: %q, Retryable: %t},\n", c.Name, c.Name, c.Meaning, c.Retryable)
	}
	b.WriteString("}\n")
	return b.String()
}

// causeFile writes the public codes and sentinels of package fila.
func causeFile(causes []cause) string {
	var b strings.Builder
	b.WriteString("package fila\n\nimport (\n\"errors\"\n\n\"github.com/faiscadev/fila/sdks/go/internal/wire\"\n)\n\n")
	b.WriteString("// What a broker can answer. CodeNone marks errors of the client itself.\nconst (\n")
	for _, c := range causes {
		name := "Code" + public(c.Name)
		if c.Code == 0 {
			name = "CodeNone"
		}
		fmt.Fprintf(&b, "%s Code = Code(wire.Code%s) // %s\n", name, c.Name, strings.TrimSuffix(meaningOf(c), "."))
	}
	b.WriteString(")\n\n// One sentinel for each cause, for use with [errors.Is].\nvar (\n")
	for _, c := range causes {
		if c.Code != 0 {
			fmt.Fprintf(&b, "%s = errors.New(%q)\n", sentinel(c), "fila: "+words(c.Name))
		}
	}
	b.WriteString(")\n\nvar sentinels = map[Code]error{\n")
	for _, c := range causes {
		if c.Code != 0 {
			fmt.Fprintf(&b, "Code%s: %s,\n", public(c.Name), sentinel(c))
		}
	}
	b.WriteString("}\n")
	return b.String()
}

func meaningOf(c cause) string {
	if c.Code == 0 {
		return "no code of the broker's."
	}
	return c.Meaning
}

// sentinel is ErrQueueNotFound for QueueNotFound, ErrStorage for StorageError.
func sentinel(c cause) string {
	return "Err" + strings.TrimSuffix(public(c.Name), "Error")
}

// public writes initialisms as Go does.
func public(name string) string { return strings.ReplaceAll(name, "Api", "API") }

// words is "queue not found" for QueueNotFound and "not a DLQ" for NotADLQ.
func words(name string) string {
	var found []string
	runes := []rune(name)
	start := 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && !(unicode.IsUpper(runes[i]) && (unicode.IsLower(runes[i-1]) || (i+1 < len(runes) && unicode.IsLower(runes[i+1])))) {
			continue
		}
		word := string(runes[start:i])
		if strings.ToUpper(word) != word {
			word = strings.ToLower(word)
		}
		found = append(found, word)
		start = i
	}
	text := strings.Join(found, " ")
	return strings.NewReplacer("ADLQ", "a DLQ", "api", "API", "lua", "Lua").Replace(text)
}
