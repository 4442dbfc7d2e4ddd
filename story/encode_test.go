package story

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
)

// An execution is encoded as the framework does it, whatever is in it: every field is there and is left out, with all kinds of values.
func TestEncodeExecution_AsTheFramework(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 400 {
		var e api.GetExecution
		fillAny(random, reflect.ValueOf(&e).Elem(), n%5, 0)
		if got, want := encodeExecution(&e), asTheFramework(t, &e); !bytes.Equal(got, want) {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			t.Fatalf("it is encoded as\n%.300s\nand by the framework as\n%.300s", got[max(0, at-100):], want[max(0, at-100):])
		}
	}
}

func FuzzEncodeValue(f *testing.F) {
	for _, value := range strangeValues() {
		f.Add(value)
	}
	for _, text := range strangeTexts() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e := api.Checkpoint{TaskID: text}
		if json.Valid([]byte(text)) {
			e.Data = map[string]json.RawMessage{text: json.RawMessage(text)}
		}
		got, want := encodeExecution(&api.GetExecution{Checkpoint: &e}), asTheFramework(t, &api.GetExecution{Checkpoint: &e})
		if !bytes.Equal(got, want) {
			t.Fatalf("%q is encoded as\n%s\nand by the framework as\n%s", text, got, want)
		}
	})
}

func strangeTexts() []string {
	return []string{"", "a", "plain text", "<b> & 'c'", "a\"b", `a\b`, "tab\tline\n", "é 名前", "a\u2028b\u2029", "bad \xff utf8", "\x7f", "\x00", "\U0001f600", "{"}
}

func strangeValues() []string {
	return []string{"null", "1.50", `"x"`, `"<é\u00e9\\\"\u2028>"`, `{"a":[1,2,{"b":null}],"c":"d e"}`, ` { "a" : [ 1 , 2 ] } `, "[]", "{}", "\n[\t1\r]", `"\\"`, `{"a\\":" "}`, `"` + "\u2028" + `"`, "-0", "1e400"}
}

// fillAny sets a value to something: most fields if some is 0, fewer and fewer the larger it is.
func fillAny(random *rand.Rand, v reflect.Value, some, depth int) {
	if depth > 0 && some > 0 && random.IntN(some+1) > 0 {
		return
	}
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	switch v.Interface().(type) {
	case json.RawMessage:
		v.SetBytes([]byte(pick(strangeValues())))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(pick(strangeTexts()))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt([]int64{0, 1, -1, 42, math.MaxInt32, math.MinInt32}[random.IntN(6)])
	case reflect.Uint64, reflect.Uint32:
		v.SetUint([]uint64{0, 1, math.MaxUint32}[random.IntN(3)])
	case reflect.Float64:
		v.SetFloat([]float64{0, math.Copysign(0, -1), 1, 0.25, 1e21, 1e-9, -129.5}[random.IntN(7)])
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillAny(random, v.Field(i), some, depth+1)
			}
		}
	case reflect.Pointer:
		if depth < 5 {
			v.Set(reflect.New(v.Type().Elem()))
			fillAny(random, v.Elem(), some, depth+1)
		}
	case reflect.Slice:
		n := random.IntN(3)
		if depth >= 5 {
			n = 0
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fillAny(random, v.Index(i), some, depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range random.IntN(4) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString(pick(strangeTexts()))
			if depth < 5 {
				fillAny(random, value, some, depth+1)
			}
			if value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Uint8 && random.IntN(4) == 0 {
				value.SetZero()
			}
			v.SetMapIndex(key, value)
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(pick(strangeTexts())))
	}
}

// asTheFramework encodes an answer as the framework of the server does.
func asTheFramework(t testing.TB, v any) []byte {
	t.Helper()
	var body bytes.Buffer
	if err := huma.DefaultJSONFormat.Marshal(&body, v); err != nil {
		t.Fatal(err)
	}
	return body.Bytes()
}

// A listing writes itself as the framework would write it.
func TestExecutions_AppendJSON(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for n := range 200 {
		var l api.Executions
		fillAny(random, reflect.ValueOf(&l).Elem(), n%5, 0)
		if got, want := append(l.AppendJSON(nil), '\n'), asTheFramework(t, l); !bytes.Equal(got, want) {
			t.Fatalf("it is written as\n%s\nand by the framework as\n%s", got, want)
		}
	}
}
