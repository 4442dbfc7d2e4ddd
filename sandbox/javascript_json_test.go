//go:build !386 && !arm && !mips && !mipsle

package sandbox

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	lib "modernc.org/libquickjs"
)

// TestJavaScript_WritesAsTheEngine compares what is read straight from the engine's memory with JSON.stringify.
func TestJavaScript_WritesAsTheEngine(t *testing.T) {
	t.Parallel()
	js, err := newJavaScript()
	if err != nil {
		t.Fatal(err)
	}
	none := lib.TJSValue{Ftag: lib.EJS_TAG_UNDEFINED}
	for source, plain := range map[string]bool{
		`null`: true, `true`: true, `false`: true, `0`: true, `-0`: true, `-1`: true, `2147483648`: true, `-2147483649`: true,
		`0.1`: true, `1.5e300`: true, `1e21`: true, `999999999999999900000`: true, `1e-6`: true, `1e-7`: true, `-1.25e-9`: true, `5e-324`: true,
		`123456789012345680000`: true, `2**53`: true, `100`: true, `1e100`: true, `1/3`: true,
		`""`: true, `"a\"b\\c/\b\f\n\r\t\u0001\u001f\u007f"`: true, `"ü\u0080\u00ff"`: true, `"€😀\u2028"`: true, `"\ud800"`: true, `"€\udc00x"`: true, `"\ud83d"+"\ude00"`: true,
		`[]`: true, `[1,[2,[3]],null,undefined]`: true, `new Array(3).fill("x")`: true, `[1,2,3].slice(1)`: true,
		`({})`: true, `({a:1,b:undefined,c:{d:[{}]}})`: true, `({"":1,"a b":2,"ü":3,"€":4,"__proto__x":5})`: true,
		`(() => { const o = {a:1,b:2,c:3}; delete o.b; o.d = 4; return o })()`:                               true,
		`(() => { const o = {}; for (let i = 0; i < 100; i++) o["k" + i] = i; return o })()`:                 true,
		`(() => { const o = {}; for (let i = 0; i < 100; i++) { o["k" + i] = i } delete o.k3; return o })()`: true,
		`(() => { const o = {a:1}; Object.defineProperty(o, "hidden", {value:1}); return o })()`:             true,
		`({[Symbol("s")]:1,a:2})`: true, `(() => { class P { x = 1; #y = 2; m() {} }; return new P() })()`: true,
		`Object.assign(Object.create(null),{a:1})`: true, `Object.freeze({a:[1]})`: true, `(() => { const s = {a:1}; return [s,s] })()`: true,
		`JSON.parse('{"__proto__":{"a":1},"b":[1.5,"x"]}')`: true, `({...{a:1},b:2})`: true, `(() => { const a = [1]; a.extra = 2; return a })()`: true,

		// What is left to the engine.
		`({2:"b",1:"a",x:0})`: false, `({4294967294:1,a:2})`: false, `({"1e3":1})`: false, `[1,,3]`: false, `(() => { const a = [1]; a.length = 3; return a })()`: false,
		`({get a() { return 1 }})`: false, `({toJSON() { return "mine" }})`: false, `[{toJSON: 1}]`: false, `new Date(0)`: false, `Object.create({toJSON() { return "inherited" }})`: false,
		`(() => { const a = [1]; a.toJSON = () => "array"; return a })()`: false, `Object(1)`: false, `Object("s")`: false, `new Map([[1,2]])`: false, `new Proxy({a:1},{})`: false,
		`Object.create(new Proxy({},{}))`: false, `({f() {}, a:1})`: false, `[() => 1, Symbol("x")]`: false, `new Uint8Array(2)`: false, `/x/`: false, `"x".repeat(10000) + "y".repeat(10000)`: false,
		`(() => { let a = []; for (let i = 0; i < 300; i++) a = [a]; return a })()`: false, `new Error("x")`: false, `[NaN]`: false, `-Infinity`: false,
		`(() => { Object.prototype.toJSON = function () { return "all" }; return {a:1} })()`: false,
	} {
		v := js.eval("("+source+")", codeFile)
		if isException(v) {
			t.Errorf("%s: %s", source, js.thrown().message)
			continue
		}
		b, ok := js.appendPlain(nil, v, 1<<20)
		if ok != plain {
			t.Errorf("%s: plain is %v", source, ok)
		}
		want, fine := js.stringify(v, none)
		if ok && (!fine || string(b) != want) {
			t.Errorf("%s: %s, want %s", source, b, want)
		}
		if ok && !json.Valid(b) {
			t.Errorf("%s: %s is not JSON", source, b)
		}
		if err := js.reset(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	cycle := js.eval(`(() => { const a = {}; a.a = [a]; return a })()`, codeFile)
	if b, ok := js.appendPlain(nil, cycle, 1<<20); ok {
		t.Errorf("a cycle gave %s", b)
	}
	doubled := js.eval(`(() => { let a = "x"; for (let i = 0; i < 100; i++) a = [a, a]; return a })()`, codeFile)
	if b, ok := js.appendPlain(nil, doubled, 1<<10); ok || len(b) > 1<<12 {
		t.Errorf("a value that unfolds gave %d bytes", len(b))
	}
	// A single text is not cut; whoever asked compares its length.
	if b, ok := js.appendPlain(nil, js.eval(`"x".repeat(1000)`, codeFile), 10); !ok || len(b) != 1002 || strings.Trim(string(b), `"x`) != "" {
		t.Errorf("one long text gave %d bytes, %v", len(b), ok)
	}
}
