package payload_test

import (
	"testing"

	"tandem/payload"
)

func TestParsePath(t *testing.T) {
	t.Parallel()
	data := []byte(` { "a b" : { "c\"d" : [ 1 , { "e" : 2.50 } ] } , "x\\y" : 3 , "l" : [ [ 7 ] ] } `)
	for _, c := range []struct{ path, want string }{
		{"a b.c\"d.1.e", "2.50"}, {`a b["c\"d"][1].e`, "2.50"}, {`["a b"]['c"d'][0]`, "1"}, {`x\y`, "3"}, {`["x\\y"]`, "3"}, {`['x\y']`, "3"},
		{"l[0][0]", "7"}, {"l.0.0", "7"}, {"l.1", ""}, {"l.x", ""}, {"l.0.0.0", ""},
		{"", "?"}, {"a.", "?"}, {".a", "?"}, {"a..b", "?"}, {"l[0]x", "?"}, {"l[", "?"}, {"l[]", "?"}, {"l[-1]", "?"}, {`a["b`, "?"}, {"a\x00", ""},
	} {
		path, err := payload.ParsePath(c.path)
		if (err != nil) != (c.want == "?") {
			t.Errorf("%q is read as %v, %v", c.path, path, err)
		}
		if err != nil {
			continue
		}
		if got, ok := path.In(data); string(got) != c.want || ok != (c.want != "") {
			t.Errorf("at %q is %s; want %s", c.path, got, c.want)
		}
		again, err := payload.ParsePath(path.String())
		if err != nil || again.String() != path.String() {
			t.Errorf("%q is written as %q, which reads as %q, %v", c.path, path.String(), again, err)
		}
	}
	if path, err := payload.ParsePath("a.b[].c"); err == nil || path.String() != "a.b" {
		t.Errorf("of a path that goes wrong, %q comes back, %v", path, err)
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		payload.JoinKey("", "a"): "a", payload.JoinKey("a", "b-c"): "a.b-c", payload.JoinKey("a", "b c"): `a["b c"]`, payload.JoinKey("a", ""): `a[""]`,
		payload.JoinKey("", "五"): "五", payload.JoinKey("a", `b"\`): `a["b\"\\"]`, payload.JoinKey("a", "b{"): `a["b{"]`,
		payload.JoinIndex("a", 3): "a[3]", payload.JoinPath("a", "b.c"): "a.b.c", payload.JoinPath("a", "[0]"): "a[0]", payload.JoinPath("", "b"): "b", payload.JoinPath("a", ""): "a",
	} {
		if got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

// The one scanner tells a text that is wrong from one that is only cut off: what streams and models send.
func TestPrefix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		end  int
		cut  bool
		ok   bool
	}{
		{`{"a":[1,"x"]} and more`, 13, false, true}, {` 12,`, 3, false, true}, {`[1,2`, 4, true, false}, {`{"a`, 3, true, false}, {`{"a":tr`, 5, true, false},
		{`{"a":"\u00`, 10, true, false}, {`"\`, 2, true, false}, {`-`, 1, true, false}, {`1.`, 2, true, false}, {`12`, 2, false, true}, {`{"a":}`, 5, false, false}, {`[tru e]`, 1, false, false},
		{`{"a" 1}`, 5, false, false}, {``, 0, true, false}, {`[[[1]]]`, 3, false, false}, {`{"a":1,}`, 7, false, false}, {"\"\n", 1, false, false},
	} {
		limits := payload.Limits{}
		if c.text == `[[[1]]]` {
			limits.MaxDepth = 3
		}
		end, err := payload.Prefix([]byte(c.text), limits)
		wrong, _ := err.(*payload.Error)
		if end != c.end || (err == nil) != c.ok || wrong != nil && wrong.Cut != c.cut {
			t.Errorf("%q: %d bytes, %+v", c.text, end, wrong)
		}
	}
}
