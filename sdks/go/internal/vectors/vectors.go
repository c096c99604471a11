// Package vectors reads the golden vectors of spec/vectors and turns their values into bodies and
// back. Tests and the conformance adapter use it; the client does not.
package vectors

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"

	"github.com/faiscadev/fila/sdks/go/internal/wire"
)

// Spec is the path of a file below the repository's spec directory.
func Spec(parts ...string) string {
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(here), "..", "..", "..", "..", "spec")
	return filepath.Join(append([]string{root}, parts...)...)
}

// Load reads one file of vectors into v.
func Load(name string, v any) error {
	content, err := os.ReadFile(Spec("vectors", name))
	if err != nil {
		return err
	}
	return json.Unmarshal(content, v)
}

// Bytes reads bytes as the vectors write them: hex, or a list of hex and repetitions.
func Bytes(v any) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return hex.DecodeString(v)
	case map[string]any:
		unit, err := hex.DecodeString(fmt.Sprint(v["repeat"]))
		count, _ := v["count"].(float64)
		return []byte(strings.Repeat(string(unit), int(count))), err
	case []any:
		var joined []byte
		for _, piece := range v {
			b, err := Bytes(piece)
			if err != nil {
				return nil, err
			}
			joined = append(joined, b...)
		}
		return joined, nil
	}
	return nil, fmt.Errorf("%T is not bytes", v)
}

// Text reads a string, or a repetition of one.
func Text(v any) string {
	if m, ok := v.(map[string]any); ok {
		count, _ := m["count"].(float64)
		return strings.Repeat(fmt.Sprint(m["repeat"]), int(count))
	}
	s, _ := v.(string)
	return s
}

// Fill sets a body's fields from the vectors' form of its values.
func Fill(body wire.Body, values map[string]any) error {
	return fill(reflect.ValueOf(body).Elem(), values)
}

func fill(into reflect.Value, values map[string]any) error {
	for i := range into.NumField() {
		name := into.Type().Field(i).Tag.Get("wire")
		value, ok := values[name]
		if !ok {
			continue
		}
		if err := set(into.Field(i), value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func set(into reflect.Value, value any) error {
	switch into.Interface().(type) {
	case []byte:
		b, err := Bytes(value)
		into.SetBytes(b)
		return err
	case []wire.Pair:
		pairs := []wire.Pair{}
		for _, entry := range list(value) {
			pair := list(entry)
			pairs = append(pairs, wire.Pair{Key: Text(pair[0]), Value: Text(pair[1])})
		}
		into.Set(reflect.ValueOf(pairs))
		return nil
	}
	switch into.Kind() {
	case reflect.Pointer:
		if value == nil {
			return nil
		}
		into.Set(reflect.New(into.Type().Elem()))
		return set(into.Elem(), value)
	case reflect.Slice:
		entries := list(value)
		into.Set(reflect.MakeSlice(into.Type(), len(entries), len(entries)))
		for i, entry := range entries {
			if err := set(into.Index(i), entry); err != nil {
				return err
			}
		}
	case reflect.Struct:
		values, _ := value.(map[string]any)
		return fill(into, values)
	case reflect.String:
		into.SetString(Text(value))
	case reflect.Bool:
		b, _ := value.(bool)
		into.SetBool(b)
	case reflect.Float64:
		f, _ := value.(float64)
		into.SetFloat(f)
	case reflect.Int64:
		n, err := strconv.ParseInt(fmt.Sprint(value), 10, 64)
		into.SetInt(n)
		return err
	case reflect.Uint64:
		n, err := strconv.ParseUint(fmt.Sprint(value), 10, 64)
		into.SetUint(n)
		return err
	default:
		f, _ := value.(float64)
		into.SetUint(uint64(f))
	}
	return nil
}

func list(v any) []any {
	entries, _ := v.([]any)
	return entries
}

// Dump writes a body's values in the vectors' form, without repetitions.
func Dump(body wire.Body) map[string]any {
	return dump(reflect.ValueOf(body).Elem())
}

func dump(from reflect.Value) map[string]any {
	values := map[string]any{}
	for i := range from.NumField() {
		field := from.Field(i)
		name := from.Type().Field(i).Tag.Get("wire")
		if field.Kind() == reflect.Pointer && field.IsNil() {
			if !trailing[from.Type().Name()+"."+name] {
				values[name] = nil
			}
			continue
		}
		values[name] = get(field)
	}
	return values
}

func get(from reflect.Value) any {
	switch v := from.Interface().(type) {
	case []byte:
		return hex.EncodeToString(v)
	case []wire.Pair:
		pairs := make([]any, 0, len(v))
		for _, pair := range v {
			pairs = append(pairs, []any{pair.Key, pair.Value})
		}
		return pairs
	case uint64:
		return strconv.FormatUint(v, 10)
	case int64:
		return strconv.FormatInt(v, 10)
	case string, bool, float64:
		return v
	}
	switch from.Kind() {
	case reflect.Pointer:
		return get(from.Elem())
	case reflect.Struct:
		return dump(from)
	case reflect.Slice:
		entries := make([]any, 0, from.Len())
		for i := range from.Len() {
			entries = append(entries, get(from.Index(i)))
		}
		return entries
	}
	return float64(from.Uint())
}

// trailing names the fields that are left out when absent; other absent values are null.
var trailing = func() map[string]bool {
	var file struct {
		Operations []struct {
			Name   string
			Fields [][2]string
		}
	}
	found := map[string]bool{}
	content, err := os.ReadFile(Spec("operations.json"))
	if err != nil || json.Unmarshal(content, &file) != nil {
		return found
	}
	for _, o := range file.Operations {
		for _, f := range o.Fields {
			if strings.HasPrefix(f[1], "optional ") {
				found[o.Name+"."+f[0]] = true
			}
		}
	}
	return found
}()
