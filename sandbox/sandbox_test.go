package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tandem/fault"
)

func TestMain(m *testing.M) {
	if isEcho() {
		if !errors.Is(echo(), io.EOF) {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if isForgetful() {
		New(Options{})
		os.Exit(0)
	}
	if IsChild() {
		Child()
	}
	os.Exit(m.Run())
}

// cacheDir is what all tests of this machine share, and keep between runs.
func cacheDir() string {
	dir, err := MachineCache()
	if err != nil {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("tandem-sandbox-%d", os.Getuid()))
	}
	return dir
}

// TestPrepare fills the cache. It is run by itself, without the race detector, before the others: that takes seconds instead of minutes.
func TestPrepare(t *testing.T) {
	p := newPool(t, Options{})
	if err := p.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !p.Prepared() {
		t.Error("the interpreter is not there")
	}
}

func newPool(t *testing.T, o Options) *Pool {
	t.Helper()
	if !pythonAvailable() {
		t.Fatal("this build has no Python interpreter; run scripts/python_wasm.sh")
	}
	o.Dir = cacheDir()
	p := New(o)
	t.Cleanup(p.Close)
	return p
}

func code(err error) fault.Code {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Code
	}
	return ""
}

func details(t *testing.T, err error) map[string]any {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("error %v is not a *fault.Error", err)
	}
	return f.Details
}

// call is one line of a table: source, input and what must come of them.
type call struct {
	name, source, entry, input string
	value                      string     // the result
	stdout                     string     // what was printed
	fails                      fault.Code // or the code of the error
	says                       string     // with this in its message
	line                       int        // and this line
	memory, output             int
	aliases                    []string
}

// run makes the calls one after the other in one pool, and after each that fails the plain call after it must work.
func run(t *testing.T, p *Pool, language Language, calls []call) {
	t.Helper()
	for _, c := range calls {
		in := c.input
		if in == "" {
			in = `{"a": 1, "b": [1, 2, 3], "c": "ü€"}`
		}
		ask := Call{Tenant: "t", Language: language, Source: c.source, Entry: c.entry, Input: json.RawMessage(in), Aliases: c.aliases, MemoryMB: c.memory, OutputLimit: c.output, TimeLimit: time.Minute}
		res, err := p.Run(t.Context(), ask)
		if code(err) != c.fails {
			t.Errorf("%s: error %v (%v), want code %q", c.name, err, res.Stderr, c.fails)
			continue
		}
		if c.fails == "" {
			if string(res.Value) != c.value || c.stdout != "" && res.Stdout != c.stdout {
				t.Errorf("%s: value %s, stdout %q; want %s, %q", c.name, res.Value, res.Stdout, c.value, c.stdout)
			}
			continue
		}
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %q does not say %q", c.name, err, c.says)
		}
		if c.line != 0 && details(t, err)["line"] != c.line {
			t.Errorf("%s: details %v, want line %d", c.name, details(t, err), c.line)
		}
		plain := map[Language]string{Python: "def f(x): return sorted([3, 1]), len(str(x))", JavaScript: "x => [[1, 3].map(y => y), JSON.stringify(x).length]"}
		res, err = p.Run(t.Context(), Call{Tenant: "t", Language: language, Source: plain[language], Input: json.RawMessage(`7`)})
		if err != nil || string(res.Value) != "[[1,3],1]" {
			t.Errorf("%s: the call after it gave %s, %v", c.name, res.Value, err)
		}
	}
}

func TestPython(t *testing.T) {
	t.Parallel()
	p := newPool(t, Options{PerTenant: 1})
	run(t, p, Python, []call{
		{name: "def", source: "def f(x):\n    return x['a'] + 1", value: "2"},
		{name: "bracketed lambda", source: "(lambda data: data['b'])", value: `[1,2,3]`},
		{name: "lambda after a comment", source: "# the list\n\n  lambda data: data['b']", value: `[1,2,3]`},
		{name: "lambda that fails after a comment", source: "# the list\nlambda data: data['x']", fails: fault.CodeError, says: "line 2"},
		{name: "lambda", source: "lambda data: {**data, 'a': 2}", value: `{"a":2,"b":[1,2,3],"c":"ü€"}`},
		{name: "no input", source: "def f(x): return x", input: "null", value: "null"},
		{name: "no parameter", source: "def f(): return 1", value: "1"},
		{name: "named entry", source: "def main(x): return 'main'\ndef other(x): return 'other'", entry: "main", value: `"main"`},
		{name: "last function", source: "import math\ndef one(x): return 1\ndef two(x): return one(x) + 1\nz = math.floor\n", entry: "main", value: "2"},
		{name: "decorated", source: "import functools\n@functools.cache\ndef f(x): return 5\n", input: "1", value: "5"},
		{name: "language", source: `
from typing import Any, Optional
from dataclasses import dataclass, asdict

@dataclass
class Point:
    x: int
    y: int = 2

def outer(d: dict[str, Any]) -> Optional[dict]:
    def inner(v: int) -> int:
        return v * 2
    try:
        1 / 0
    except ZeroDivisionError as e:
        why = f"{e!s}"
    match d["a"]:
        case 1: word = "one"
        case _: word = "other"
    squares = {k: inner(v) for k, v in enumerate(d["b"]) if (n := v) > 1}
    return {**d, "why": why, "set": sorted({3, 1, 2}, key=lambda v: -v), "squares": squares,
            "point": asdict(Point(1)), "isint": isinstance(d["a"], int), "word": word}
`, value: `{"a":1,"b":[1,2,3],"c":"ü€","why":"division by zero","set":[3,2,1],"squares":{"1":4,"2":6},"point":{"x":1,"y":2},"isint":true,"word":"one"}`},
		{name: "library", source: `
import json, math, re, datetime, itertools, functools, collections, statistics, decimal, string, random
def f(x):
    random.seed(1)
    return [json.loads("[1]"), math.sqrt(9), re.sub(r"(\w+)@", r"\1 at ", "ada@x"), datetime.date(2024, 2, 29).isoformat(),
            list(itertools.accumulate([1, 2, 3])), functools.reduce(lambda a, b: a + b, [1, 2]), collections.Counter("aab").most_common(1),
            statistics.mean([1, 2, 3]), str(decimal.Decimal("0.1") + decimal.Decimal("0.2")), string.ascii_lowercase[:3], random.randint(1, 100)]
`, value: `[[1],3.0,"ada at x","2024-02-29",[1,3,6],3,[["a",2]],2,"0.3","abc",18]`},
		{name: "numbers", source: "def f(x): return [x, 2**70, -1, 1e300, 0.1, 1.0, True, None, 3.0e-7]", input: "123456789012345678901234567890",
			value: "[123456789012345678901234567890,1180591620717411303424,-1,1e+300,0.1,1.0,true,null,3e-07]"},
		{name: "subclasses", source: "import collections, enum\nclass E(enum.IntEnum):\n  A = 1\ndef f(x): return [collections.OrderedDict(a=1), collections.defaultdict(int, b=2), E.A, (1, 2)]", value: `[{"a":1},{"b":2},1,[1,2]]`},
		{name: "keys", source: "def f(x): return {1: 'a', None: 'b', True: 'c', 2.5: 'd'}", value: `{"1":"c","null":"b","2.5":"d"}`},
		{name: "shared values", source: "def f(x):\n  k = [1000, 'key']\n  return [{1000: 1000}, {1000: k}, k, {'key': 'key'}, 1000, 'key', (k, k)]", value: `[{"1000":1000},{"1000":[1000,"key"]},[1000,"key"],{"key":"key"},1000,"key",[[1000,"key"],[1000,"key"]]]`},
		{name: "tuple key", source: "def f(x): return {(1, 2): 3}", fails: fault.OutputInvalid, says: "keys must be"},
		{name: "text", source: "def f(x): return x + '\\n\"\\\\\\x00é😀'", input: `"\u00fc\ud83d\ude00\t"`, value: `"ü😀\t\n\"\\\u0000é😀"`},
		{name: "print", source: "import sys\ndef f(x):\n  print('hello', x['c'])\n  print('no', file=sys.stderr)\n  return 1", value: "1", stdout: "hello ü€\n"},
		{name: "large", source: "def f(x): return len(x)", input: `"` + strings.Repeat("x", 3<<20) + `"`, value: fmt.Sprint(3 << 20)},
		{name: "memory within the limit", source: "def f(x): return len(bytearray(80 << 20))", memory: 128, value: fmt.Sprint(80 << 20)},

		{name: "exception", source: "def f(x):\n    y = x\n    return y['nothing']", fails: fault.CodeError, says: "line 3: KeyError: 'nothing'", line: 3},
		{name: "exception below", source: "def g(v):\n    raise ValueError('bad ' + v)\n\ndef f(x):\n    return g('day')", fails: fault.CodeError, says: "ValueError: bad day", line: 2},
		{name: "syntax", source: "def f(x):\n    return (1,\n", fails: fault.CodeError, says: "SyntaxError", line: 2},
		{name: "at the top", source: "x = 1\ny = x / 0\n", fails: fault.CodeError, says: "ZeroDivisionError", line: 2},
		{name: "no function", source: "x = 1", fails: fault.CodeError, says: "defines no function"},
		{name: "unprintable exception", source: "class E(Exception):\n  def __str__(self): raise self\ndef f(x): raise E()", fails: fault.CodeError, says: "no readable message"},
		{name: "NaN", source: "def f(x): return {'a': [float('nan')]}", fails: fault.OutputInvalid, says: "not JSON"},
		{name: "infinity", source: "def f(x): return float('inf')", fails: fault.OutputInvalid, says: "not JSON"},
		{name: "cycle", source: "def f(x):\n  x['a'] = x\n  return x", fails: fault.OutputInvalid, says: "ircular"},
		{name: "set", source: "def f(x): return {1}", fails: fault.OutputInvalid, says: "type set"},
		{name: "bytes", source: "def f(x): return b'x'", fails: fault.OutputInvalid, says: "type bytes"},
		{name: "lone surrogate", source: "def f(x): return '\\ud800'", fails: fault.OutputInvalid, says: "surrogate"},
	})
	_, err := p.Run(t.Context(), Call{Tenant: "t", Language: Python, Source: "def f(x):\n    return 1 // x\n", Input: json.RawMessage("0")})
	got := details(t, err)
	if got["type"] != "ZeroDivisionError" || got["line"] != 2 || !strings.Contains(fmt.Sprint(got["traceback"]), "line 2, in f\n    return 1 // x") {
		t.Errorf("details %v", got)
	}
}

// Functions as people and generators write them: with the names of typing and the usual modules without an import, with
// annotations that name anything, and with parameters by name.
func TestPython_AsItIsWritten(t *testing.T) {
	t.Parallel()
	p := newPool(t, Options{PerTenant: 1})
	const order = `{"order_id": "o1", "lines": [{"sku": "a", "n": 2}, {"sku": "b", "n": 3}], "note": "Call 555-0100", "at": "2024-02-29T10:00:00"}`
	run(t, p, Python, []call{
		{name: "typing", source: "def convert(input_data: Dict[str, Any]) -> Dict[str, Any]:\n    return {'id': input_data.get('order_id')}", input: order, value: `{"id":"o1"}`},
		{name: "on one line", source: "def convert(input_data: Dict[str, Any]) -> Dict[str, Any]: return {'text': f\"{input_data.get('order_id', '')}!\"}", input: order, value: `{"text":"o1!"}`},
		{name: "all names of typing", source: `
T = TypeVar("T")
Row = NamedTuple("Row", [("sku", str), ("n", int)])
class Box(Generic[T], Protocol):
    pass
def convert(d: Mapping[str, Union[int, List[Optional[str]]]], *more: Tuple[Any, ...]) -> Iterable[Callable[[int], Literal["a"]]]:
    rows: List[Row] = [Row(**l) for l in d["lines"]]
    return cast(int, sum(r.n for r in rows))
`, input: order, value: "5"},
		{name: "json", source: "def convert(d): return json.loads(json.dumps(d['lines']))[0]", input: order, value: `{"sku":"a","n":2}`},
		{name: "re", source: `def convert(d): return re.findall(r"\d{3}-\d{4}", d["note"])`, input: order, value: `["555-0100"]`},
		{name: "math", source: "def convert(d): return math.ceil(sum(l['n'] for l in d['lines']) / 2)", input: order, value: "3"},
		{name: "datetime", source: "def convert(d): return (datetime.datetime.fromisoformat(d['at']) + datetime.timedelta(days=1)).date().isoformat()", input: order, value: `"2024-03-01"`},
		{name: "the class datetime", source: "def convert(d): return [(datetime.fromisoformat(d['at']) + timedelta(days=1)).isoformat(), datetime.strptime('2024', '%Y').year, datetime(2024, 2, 29, tzinfo=timezone.utc).isoformat(), datetime.now() > datetime.min]", input: order, value: `["2024-03-01T10:00:00",2024,"2024-02-29T00:00:00+00:00",true]`},
		{name: "what is a datetime", source: "def convert(d): return [isinstance(datetime.now(), datetime), isinstance(datetime.date(2024, 1, 1), datetime), isinstance(datetime.datetime.now(), (str, datetime)), issubclass(datetime.datetime, datetime)]", input: order, value: "[true,false,true,true]"},
		{name: "the module all the same", source: "import datetime\ndef convert(d): return [type(datetime).__name__, hasattr(datetime, 'now')]", input: order, value: `["module",false]`},
		{name: "what datetime has not", source: "def convert(d):\n    try: datetime.nothing\n    except AttributeError as e: return 'nothing' in str(e)", input: order, value: "true"},
		{name: "an import all the same", source: "from datetime import datetime\nfrom typing import Dict\ndef convert(d: Dict): return datetime.fromisoformat(d['at']).year", input: order, value: "2024"},
		{name: "a name of its own", source: "json = 'mine'\ndef convert(d): return json", input: order, value: `"mine"`},
		{name: "names are not the program's", source: "def convert(d): return sorted(n for n in globals() if not n.startswith('__'))", input: order, value: `["convert"]`},
		{name: "a class of annotations", source: "import dataclasses\n@dataclasses.dataclass\nclass Line:\n    sku: Sku\n    n: Optional[int] = None\ndef convert(d): return [dataclasses.asdict(Line(**l)) for l in d['lines']][1]", input: order, value: `{"sku":"b","n":3}`},
		{name: "annotations of nobody", source: "def convert(d: pd.DataFrame, n: 'np.ndarray' = None) -> requests.Response:\n    x: SomeThing = d['order_id']\n    return x", input: order, value: `"o1"`},
		{name: "keyword arguments", source: "def main(order_id: str, lines: list) -> dict:\n    return {'result': order_id + str(len(lines))}", entry: "main", input: order, value: `{"result":"o12"}`},
		{name: "keyword arguments with defaults", source: "def main(order_id, lines, currency='EUR', note=''): return [order_id, currency, note]", entry: "main", input: order, value: `["o1","EUR","Call 555-0100"]`},
		{name: "defaults alone", source: "def main(order_id='', currency='EUR'): return [order_id, currency]", entry: "main", input: order, value: `["o1","EUR"]`},
		{name: "keywords only", source: "def main(*, order_id, currency='EUR'): return [order_id, currency]", entry: "main", input: order, value: `["o1","EUR"]`},
		{name: "all keywords", source: "def main(**fields): return sorted(fields)", entry: "main", input: order, value: `["at","lines","note","order_id"]`},
		{name: "some and the rest", source: "def main(order_id, note, **rest): return [order_id, sorted(rest)]", entry: "main", input: order, value: `["o1",["at","lines"]]`},
		{name: "input and a keyword", source: "def main(data, *, note=''): return [len(data), note]", entry: "main", input: order, value: `[4,"Call 555-0100"]`},
		{name: "positional only", source: "def main(order_id, note, /): return order_id + note[:1]", entry: "main", input: order, value: `"o1C"`},
		{name: "decorated", source: "import functools\ndef twice(f):\n    @functools.wraps(f)\n    def run(*args, **kw): return [f(*args, **kw)] * 2\n    return run\n@twice\ndef main(order_id, note): return order_id", entry: "main", input: order, value: `["o1","o1"]`},
		{name: "one parameter called like a field", source: "def main(order_id: str) -> dict: return {'result': order_id.upper()}", entry: "main", input: order, value: `{"result":"O1"}`},
		{name: "and one with a default", source: "def main(order_id, currency='EUR', note=''): return [order_id, currency, note]", entry: "main", input: order, value: `["o1","EUR","Call 555-0100"]`},
		{name: "one parameter called like no field", source: "def main(order): return sorted(order)", entry: "main", input: order, value: `["at","lines","note","order_id"]`},
		{name: "one parameter for the whole input", source: "def main(data): return sorted(data)", entry: "main", input: `{"data": 1, "other": 2}`, value: `["data","other"]`},
		{name: "a parameter of another function", source: "def convert(order_id): return sorted(order_id)", entry: "convert", input: order, value: `["at","lines","note","order_id"]`},
		{name: "one parameter and a default", source: "def main(data, note=1): return [len(data), note]", entry: "main", input: order, value: `[4,1]`},
		{name: "a keyword that is missing", source: "def main(order_id, price, tax): return 1", entry: "main", input: order, fails: fault.CodeError, says: "there is no price, tax; there are: at, lines, note, order_id"},
		{name: "keywords of a list", source: "def main(a, b): return 1", entry: "main", input: "[1]", fails: fault.CodeError, says: "takes the fields of an object by name, and the input is of type list"},
		{name: "keywords of a text", source: "def main(**fields): return 1", entry: "main", input: `"x"`, fails: fault.CodeError, says: "the input is of type str"},
		{name: "sleep", source: "import time\ndef main(d):\n    began = time.monotonic()\n    time.sleep(0.05)\n    return time.monotonic() - began >= 0.05", entry: "main", value: "true"},
		{name: "sleep while loading", source: "import time\ntime.sleep(0.001)\ndef main(d): return 1", entry: "main", value: "1"},
		{name: "negative sleep", source: "import time\ndef main(d): time.sleep(-1)", entry: "main", fails: fault.CodeError, says: "ValueError"},
	})
	began := time.Now()
	_, err := p.Run(t.Context(), Call{Tenant: "t", Language: Python, Source: "import time\ndef main(d): time.sleep(3600)", TimeLimit: 100 * time.Millisecond})
	if code(err) != fault.CodeLimit || time.Since(began) > time.Minute {
		t.Errorf("an hour of sleep ended after %s with %v, want the time limit", time.Since(began), err)
	}
}

// What code has printed is told while it runs, and kept however it ends.
func TestPrinted(t *testing.T) {
	t.Parallel()
	p := newPool(t, Options{PerTenant: 1})
	for name, c := range map[string]struct {
		language       Language
		source         string
		fails          fault.Code
		stdout, stderr string
	}{
		"python returns":     {Python, "import sys\ndef f(x):\n  print('one')\n  print('two', file=sys.stderr)\n  print('three', end='')\n  return 1", "", "one\nthree", "two\n"},
		"python raises":      {Python, "def f(x):\n  print('one')\n  print('two', end='')\n  raise ValueError('no')", fault.CodeError, "one\ntwo", ""},
		"python never ends":  {Python, "def f(x):\n  print('one')\n  while True: pass", fault.CodeLimit, "one\n", ""},
		"python sleeps":      {Python, "import time\nprint('loading')\ndef f(x):\n  print('one')\n  time.sleep(600)", fault.CodeLimit, "loading\none\n", ""},
		"python no JSON":     {Python, "def f(x):\n  print('one')\n  return {1}", fault.OutputInvalid, "one\n", ""},
		"python no memory":   {Python, "def f(x):\n  print('one')\n  return len('x' * (1 << 30))", fault.CodeLimit, "one\n", ""},
		"script returns":     {JavaScript, "x => { console.log('one'); console.error('two'); return 1 }", "", "one\n", "two\n"},
		"script throws":      {JavaScript, "x => { console.log('one'); throw new Error('no') }", fault.CodeError, "one\n", ""},
		"script never ends":  {JavaScript, "x => { console.log('one'); for (;;); }", fault.CodeLimit, "one\n", ""},
		"more than can be":   {JavaScript, "x => { for (let i = 0; i < 20000; i++) console.log('12345'); return 1 }", "", strings.Repeat("12345\n", 20000)[:streamLimit], ""},
		"printed by loading": {Python, "print('loading')\ndef f(x):\n  return 1", "", "loading\n", ""},
	} {
		var live [2]strings.Builder
		res, err := p.Run(t.Context(), Call{
			Tenant: "t", Language: c.language, Source: c.source, MemoryMB: 64, TimeLimit: map[bool]time.Duration{true: 500 * time.Millisecond}[strings.Contains(name, "never") || strings.Contains(name, "sleeps")],
			Printed: func(stream Stream, text string) { live[map[Stream]int{Stdout: 0, Stderr: 1}[stream]].WriteString(text) },
		})
		if code(err) != c.fails || res.Stdout != c.stdout || res.Stderr != c.stderr {
			t.Errorf("%s: %q, %q, %v; want %q, %q, %q", name, res.Stdout, res.Stderr, err, c.stdout, c.stderr, c.fails)
		}
		if live[0].String() != c.stdout || live[1].String() != c.stderr {
			t.Errorf("%s: told %q, %q while it ran; want %q, %q", name, live[0].String(), live[1].String(), c.stdout, c.stderr)
		}
	}
}

func TestJavaScript(t *testing.T) {
	t.Parallel()
	p := New(Options{PerTenant: 1})
	t.Cleanup(p.Close)
	run(t, p, JavaScript, []call{
		{name: "function", source: "function f(x) {\n  return x.a + 1;\n}", value: "2"},
		{name: "arrow", source: "data => ({...data, a: 2})", value: `{"a":2,"b":[1,2,3],"c":"ü€"}`},
		{name: "arrow with semicolon", source: "(x) => { return x.b.map(v => v * 2); };", value: "[2,4,6]"},
		{name: "nameless", source: "function (x) { return 1 };", value: "1"},
		{name: "async", source: "async function f(x) { return await Promise.resolve(x.a) }", value: "1"},
		{name: "named entry", source: "const main = () => 'main';\nfunction other() { return 'other' }", entry: "main", value: `"main"`},
		{name: "last function", source: "function one() { return 1 }\nconst two = () => one() + 1;\nlet three = 3;\n", entry: "main", value: "2"},
		{name: "nothing returned", source: "x => {}", value: "null"},
		{name: "values", source: "x => [null, undefined, 1.5, true, 'ü', new Date(0), {a: undefined, b: {}}]", value: `[null,null,1.5,true,"ü","1970-01-01T00:00:00.000Z",{"b":{}}]`},
		{name: "console", source: "x => { console.log('hello', x.c, {a: 1}); console.error('no'); return 1 }", value: "1", stdout: "hello ü€ {\"a\":1}\n"},
		{name: "library", source: "x => [Math.max(1, 2), [3, 1].sort(), /a(.)/.exec('ab')[1], new Map([[1, 2]]).get(1), JSON.parse('[1]'), `t${1}`]", value: `[2,[1,3],"b",2,[1],"t1"]`},
		{name: "memory within the limit", source: "x => new Uint8Array(80 << 20).length", memory: 128, value: fmt.Sprint(80 << 20)},

		{name: "exception", source: "function f(x) {\n  const y = x;\n  return y.no.thing;\n}", fails: fault.CodeError, says: "TypeError", line: 3},
		{name: "thrown value", source: "x => { throw 'just text' }", fails: fault.CodeError, says: "just text"},
		{name: "rejected", source: "async x => {\n  throw new RangeError('far')\n}", fails: fault.CodeError, says: "RangeError: far", line: 2},
		{name: "never settles", source: "x => new Promise(() => {})", fails: fault.CodeError, says: "never settles"},
		{name: "syntax", source: "function f(x) {\n  return (1,\n", fails: fault.CodeError, says: "SyntaxError", line: 3},
		{name: "no function", source: "let x = 1", fails: fault.CodeError, says: "defines no function"},
		{name: "NaN", source: "x => ({a: [NaN]})", fails: fault.OutputInvalid, says: "JSON has no NaN"},
		{name: "infinity", source: "x => -Infinity", fails: fault.OutputInvalid, says: "JSON has no -Infinity"},
		{name: "cycle", source: "x => { x.a = x; return x }", fails: fault.OutputInvalid, says: "ircular"},
		{name: "big integer", source: "x => 10n", fails: fault.OutputInvalid, says: "BigInt"},
		{name: "function returned", source: "x => () => 1", fails: fault.OutputInvalid, says: "function"},
	})
}

// TestEscape tries to get out, to stay, and to take everything. Each attempt ends in a clear error, or has no effect,
// and the call after it finds nothing of it.
func TestEscape(t *testing.T) {
	t.Parallel()
	t.Run("Python", func(t *testing.T) {
		t.Parallel()
		run(t, newPool(t, Options{PerTenant: 1}), Python, []call{
			{name: "read a file", source: "def f(x): return open('/etc/passwd').read()", fails: fault.CodeError, says: "FileNotFoundError"},
			{name: "write a file", source: "def f(x): open('/tmp/x', 'w').write('x')", fails: fault.CodeError, says: "Error"},
			{name: "list the root", source: "import os\ndef f(x): return os.listdir('/')", fails: fault.CodeError, says: "Error"},
			{name: "open a descriptor", source: "import os\ndef f(x): return os.read(9, 10)", fails: fault.CodeError, says: "Bad file descriptor"},
			{name: "socket", source: "import socket\ndef f(x):\n  s = socket.socket()\n  s.connect(('192.0.2.1', 80))", fails: fault.CodeError, says: "Error"},
			{name: "http", source: "import urllib.request\ndef f(x): return urllib.request.urlopen('http://192.0.2.1/').read()", fails: fault.CodeError, says: "Error"},
			{name: "subprocess", source: "import subprocess\ndef f(x): return subprocess.run(['/bin/sh', '-c', 'id'])", fails: fault.CodeError, says: "Error"},
			{name: "system", source: "import os\ndef f(x): return os.system('id')", fails: fault.CodeError, says: "AttributeError"},
			{name: "fork", source: "import os\ndef f(x): return os.fork()", fails: fault.CodeError, says: "AttributeError"},
			{name: "kill", source: "import os\ndef f(x): return os.kill(os.getppid(), 9)", fails: fault.CodeError, says: "AttributeError"},
			{name: "thread", source: "import threading\ndef f(x): threading.Thread(target=print).start()", fails: fault.CodeError, says: "Error"},
			{name: "native code", source: "import ctypes\ndef f(x): return ctypes.CDLL(None)", fails: fault.CodeError, says: "Error"},
			{name: "environment", source: "import os\ndef f(x): return [k for k in os.environ if k != 'PYTHONHASHSEED']", value: "[]"},
			{name: "arguments", source: "import sys\ndef f(x): return sys.argv", value: `["-c"]`},
			{name: "memory bomb", source: "def f(x):\n  a = []\n  while True: a.append(bytearray(1 << 20))", fails: fault.CodeLimit, says: "memory"},
			{name: "memory at once", source: "def f(x): return len(bytearray(1 << 30))", memory: 16, fails: fault.CodeLimit, says: "16 MB"},
			{name: "memory in the interpreter", source: "def f(x): return len('x' * (1 << 31 - 1))", fails: fault.CodeLimit, says: "memory"},
			{name: "deep recursion", source: "def f(x): return f(x)", fails: fault.CodeError, says: "RecursionError"},
			{name: "unbounded recursion", source: "import sys\ndef f(x):\n  sys.setrecursionlimit(10**9)\n  def g(n): return repr(g(n))\n  class A:\n    def __repr__(self): return repr(A())\n  return repr(A())", fails: fault.CodeLimit, says: "stack"},
			{name: "deep nesting", source: "def f(x):\n  a = []\n  for _ in range(100000): a = [a]\n  return a", fails: fault.OutputInvalid, says: "ecursion"},
			{name: "deep input", source: "def f(x): return x", input: strings.Repeat("[", 300) + strings.Repeat("]", 300), value: strings.Repeat("[", 300) + strings.Repeat("]", 300)},
			{name: "exit", source: "import sys\ndef f(x): sys.exit(3)", fails: fault.CodeError, says: "SystemExit"},
			{name: "hard exit", source: "import os\ndef f(x): os._exit(3)", fails: fault.CodeError, says: "ended the interpreter"},
			{name: "abort", source: "import os\ndef f(x): os.abort()", fails: fault.CodeLimit},
			{name: "result too large", source: "def f(x): return 'x' * (1 << 20)", output: 1 << 19, fails: fault.CodeLimit, says: "bytes of JSON"},
			{name: "result that unfolds", source: "def f(x):\n  a = ['x']\n  for i in range(100): a = [a, a]\n  return a", fails: fault.CodeLimit, says: "bytes of JSON"},
			{name: "print flood", source: "def f(x):\n  for i in range(5000): print('y' * 100)\n  return 1", value: "1", stdout: (strings.Repeat(strings.Repeat("y", 100)+"\n", 700))[:64<<10]},
			{name: "closed stdout", source: "import os, sys\ndef f(x):\n  sys.stdout.close()\n  os.close(2)\n  return 1", value: "1"},
			{name: "stdin", source: "import sys\ndef f(x): return sys.stdin.read()", value: `""`},

			{name: "leave state", source: "import builtins, json, sys, math, posix\ndef f(x):\n  builtins.kept = 1\n  json.kept = 1\n  math.pi = 3\n  sys.modules['kept'] = json\n  sys.path.append('kept')\n  global g\n  g = 1\n  return 1", value: "1"},
			{name: "find state", source: "import builtins, json, sys, math\ndef f(x): return [hasattr(builtins, 'kept'), hasattr(json, 'kept'), math.pi > 3.1, 'kept' in sys.modules, 'kept' in sys.path, 'g' in globals()]", value: "[false,false,true,false,false,false]"},
			{name: "patch builtins", source: "import builtins, json, sys\ndef f(x):\n  bad = lambda *a, **k: 'bad'\n  for n in ('len', 'sorted', 'eval', 'compile', 'isinstance', 'type', 'str', 'callable'): setattr(builtins, n, bad)\n  json.dumps = json.loads = bad\n  json.encoder.c_make_encoder = bad\n  sys.stdout = sys.stderr = None\n  sys.meta_path.clear()\n  sys.modules.clear()\n  return 1", value: "1"},
			{name: "find patches", source: "import json\ndef f(x): return [len([1]), json.dumps([1]), json.loads('[1]')]", value: `[1,"[1]",[1]]`},
			{name: "reach the host's side", source: "import sys, gc\ndef f(x):\n  frame = sys._getframe()\n  while frame.f_back: frame = frame.f_back\n  for o in gc.get_objects():\n    if type(o) is dict: o.clear()\n  return 1", value: "1"},
			{name: "find that", source: "def f(x): return x['a']", value: "1"},
		})
	})
	t.Run("JavaScript", func(t *testing.T) {
		t.Parallel()
		p := New(Options{PerTenant: 1})
		t.Cleanup(p.Close)
		run(t, p, JavaScript, []call{
			{name: "modules", source: "x => [typeof require, typeof process, typeof std, typeof os, typeof fetch, typeof Deno, typeof setTimeout]", value: `["undefined","undefined","undefined","undefined","undefined","undefined","undefined"]`},
			{name: "import", source: "x => import('os')", fails: fault.CodeError, says: "could not load module"},
			{name: "static import", source: "import * as os from 'os'; x => 1", fails: fault.CodeError, says: "SyntaxError"},
			{name: "memory bomb", source: "x => { const a = []; for (;;) a.push(new Array(1000).fill(x)) }", memory: 16, fails: fault.CodeLimit, says: "memory"},
			{name: "memory at once", source: "x => new Uint8Array(1 << 29).length", memory: 16, fails: fault.CodeLimit, says: "16 MB"},
			{name: "text bomb", source: "x => { const a = []; for (let i = 0;; i++) a.push('x'.repeat(1 << 22) + i) }", memory: 16, fails: fault.CodeLimit, says: "memory"},
			{name: "deep recursion", source: "function f(x) { return f(x) + 1 }", fails: fault.CodeError, says: "stack"},
			{name: "deep expression", source: "x => " + strings.Repeat("(", 100000), fails: fault.CodeError},
			{name: "endless regular expression within time", source: "x => /^(a+)+$/.test('a'.repeat(16) + 'b')", value: "false"},
			{name: "result too large", source: "x => 'x'.repeat(1 << 20)", output: 1 << 19, fails: fault.CodeLimit, says: "bytes of JSON"},
			{name: "print flood", source: "x => { for (let i = 0; i < 5000; i++) console.log('y'.repeat(100)); return 1 }", value: "1", stdout: (strings.Repeat(strings.Repeat("y", 100)+"\n", 700))[:64<<10]},
			{name: "blocking", source: "x => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)", fails: fault.CodeError, says: "TypeError"},

			{name: "leave state", source: "function f(x) { globalThis.kept = 1; Object.prototype.kept = 1; Array.prototype.map = () => 'bad'; Math.max = 1; console.log = 1; return 1 }", value: "1"},
			{name: "find state", source: "x => [typeof kept, typeof {}.kept, [1].map(y => y), Math.max(1, 2), typeof console.log, typeof f]", value: `["undefined","undefined",[1],2,"function","undefined"]`},
			{name: "patch JSON", source: "x => { JSON.parse = JSON.stringify = () => 'bad'; Object.prototype.toJSON = () => 'mine'; return 1 }", value: "1"},
			{name: "pollute a prototype by input", source: "x => ({...x, polluted: {}.p})", input: `{"__proto__": {"p": 1}}`, value: `{"__proto__":{"p":1}}`},
			{name: "find patches", source: "x => [JSON.stringify([1]), {a: 1}]", value: `["[1]",{"a":1}]`},
		})
	})
}

func TestPool(t *testing.T) {
	t.Parallel()
	endless := map[Language]string{Python: "def f(x):\n  while True: pass", JavaScript: "x => { for (;;); }"}
	pid := func(p *Pool, tenant string) map[int]bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		pids := make(map[int]bool)
		for key, l := range p.lanes {
			if key.tenant == tenant {
				for _, ch := range l.idle {
					pids[ch.cmd.Process.Pid] = true
				}
				for ch := range l.busy {
					pids[ch.cmd.Process.Pid] = true
				}
			}
		}
		return pids
	}
	for language, source := range endless {
		t.Run("KillsAtTheDeadline/"+string(language), func(t *testing.T) {
			t.Parallel()
			p := newPool(t, Options{PerTenant: 2})
			plain := Call{Tenant: "t", Language: language, Source: map[Language]string{Python: "lambda x: x", JavaScript: "x => x"}[language]}
			if _, err := p.Run(t.Context(), plain); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err := p.Run(t.Context(), Call{Tenant: "t", Language: language, Source: source, TimeLimit: 50 * time.Millisecond})
			if code(err) != fault.CodeLimit || details(t, err)["limit"] != limitTime {
				t.Errorf("error %v", err)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("it took %s to stop an endless loop", took)
			}
			if _, err := p.Run(t.Context(), plain); err != nil {
				t.Errorf("the call after it: %v", err)
			}
		})
		t.Run("Cancel/"+string(language), func(t *testing.T) {
			t.Parallel()
			p := newPool(t, Options{PerTenant: 1})
			plain := Call{Tenant: "t", Language: language, Source: map[Language]string{Python: "lambda x: x", JavaScript: "x => x"}[language]}
			if _, err := p.Run(t.Context(), plain); err != nil { // then there is a child that takes the next call at once
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			_, err := p.Run(ctx, Call{Tenant: "t", Language: language, Source: source, TimeLimit: time.Minute})
			if code(err) != fault.Timeout || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
			ctx, cancel = context.WithCancel(t.Context())
			cancel()
			if _, err := p.Run(ctx, Call{Tenant: "t", Language: language, Source: source}); code(err) != fault.Canceled {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("Parallel", func(t *testing.T) {
		t.Parallel()
		p := newPool(t, Options{PerTenant: 2, Total: 3})
		var wg sync.WaitGroup
		for i := range 24 {
			wg.Go(func() {
				c := Call{Tenant: fmt.Sprint("t", i%3), Language: Python, Source: "def f(x): return x * 2", Input: json.RawMessage(fmt.Sprint(i)), TimeLimit: time.Minute}
				if i%2 == 0 {
					c.Language, c.Source = JavaScript, "x => x * 2"
				}
				res, err := p.Run(t.Context(), c)
				if err != nil || string(res.Value) != fmt.Sprint(2*i) {
					t.Errorf("call %d: %s, %v", i, res.Value, err)
				}
			})
		}
		wg.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.total > 3 || len(p.queue) > 0 {
			t.Errorf("%d children, %d waiting", p.total, len(p.queue))
		}
	})
	t.Run("SurvivesAKilledChild", func(t *testing.T) {
		t.Parallel()
		p := newPool(t, Options{PerTenant: 1})
		plain := Call{Tenant: "t", Language: JavaScript, Source: "x => 1"}
		if _, err := p.Run(t.Context(), plain); err != nil {
			t.Fatal(err)
		}
		for id := range pid(p, "t") {
			proc, err := os.FindProcess(id)
			if err != nil {
				t.Fatal(err)
			}
			if err := proc.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		// Whether the pool has noticed or not, the next call works.
		if _, err := p.Run(t.Context(), plain); err != nil {
			t.Error(err)
		}
	})
	t.Run("SurvivesAChildKilledInACall", func(t *testing.T) {
		t.Parallel()
		p := newPool(t, Options{PerTenant: 1})
		done := make(chan error, 1)
		go func() {
			_, err := p.Run(t.Context(), Call{Tenant: "t", Language: JavaScript, Source: endless[JavaScript], TimeLimit: time.Minute})
			done <- err
		}()
		// Every child that the call gets is killed from outside, until it gives up. Nothing tells when it has got one.
		for again := time.NewTicker(time.Millisecond); ; <-again.C {
			select {
			case err := <-done:
				if code(err) != fault.CodeLimit || !strings.Contains(err.Error(), "lost") {
					t.Errorf("error %v", err)
				}
				return
			case <-t.Context().Done():
				t.Fatal("the call never ended")
			default:
			}
			p.mu.Lock()
			for _, l := range p.lanes {
				for ch := range l.busy {
					if err := ch.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
						t.Error(err)
					}
				}
			}
			p.mu.Unlock()
		}
	})
	t.Run("TenantsNeverShare", func(t *testing.T) {
		t.Parallel()
		p := newPool(t, Options{PerTenant: 2, Total: 2})
		owner := make(map[int]string)
		for i := range 12 {
			tenant := fmt.Sprint("tenant-", i%3)
			if _, err := p.Run(t.Context(), Call{Tenant: tenant, Language: JavaScript, Source: "x => 1"}); err != nil {
				t.Fatal(err)
			}
			pids := pid(p, tenant)
			if len(pids) == 0 {
				t.Fatalf("%s has no child after its call", tenant)
			}
			for id := range pids {
				if other, ok := owner[id]; ok && other != tenant {
					t.Errorf("process %d worked for %q and for %q", id, other, tenant)
				}
				owner[id] = tenant
			}
		}
	})
	t.Run("ChildrenEndWithTheirParent", func(t *testing.T) {
		t.Parallel()
		ch, err := startChild(t.Context(), laneKey{"t", JavaScript}, "")
		if err != nil {
			t.Fatal(err)
		}
		q, invalid := (&Call{Tenant: "t", Language: JavaScript, Source: endless[JavaScript]}).request()
		if invalid != nil {
			t.Fatal(invalid)
		}
		if err := writeFrame(ch.in, q.append(frame(nil))); err != nil {
			t.Fatal(err)
		}
		// What the kernel does for a parent that is gone; requests stay open, and the loop never ends by itself.
		if err := ch.files[len(ch.files)-1].Close(); err != nil {
			t.Fatal(err)
		}
		<-ch.gone
	})
	t.Run("EndsIdleChildren", func(t *testing.T) {
		t.Parallel()
		p := newPool(t, Options{Idle: 10 * time.Millisecond})
		if _, err := p.Run(t.Context(), Call{Tenant: "t", Language: JavaScript, Source: "x => 1"}); err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		var idle []*child
		for _, l := range p.lanes {
			idle = append(idle, l.idle...)
		}
		p.mu.Unlock()
		for _, ch := range idle {
			<-ch.gone
		}
	})
	t.Run("Close", func(t *testing.T) {
		t.Parallel()
		p := newPool(t, Options{})
		if len(p.lanes) != 0 || p.total != 0 {
			t.Error("a new pool has children")
		}
		if _, err := p.Run(t.Context(), Call{Tenant: "t", Language: JavaScript, Source: "x => 1"}); err != nil {
			t.Fatal(err)
		}
		p.Close()
		if _, err := p.Run(t.Context(), Call{Tenant: "t", Language: JavaScript, Source: "x => 1"}); code(err) != fault.Interrupted {
			t.Errorf("error %v", err)
		}
		p.Close()
	})
	t.Run("RefusesWrongCalls", func(t *testing.T) {
		t.Parallel()
		p := New(Options{})
		t.Cleanup(p.Close)
		for want, c := range map[string]Call{
			"names no tenant": {Language: Python, Source: "x"},
			`"cobol"`:         {Tenant: "t", Language: "cobol", Source: "x"},
			"2000 MB":         {Tenant: "t", Language: Python, Source: "x", MemoryMB: 2000},
			"8 MB":            {Tenant: "t", Language: Python, Source: "x", MemoryMB: 8},
			"negative":        {Tenant: "t", Language: Python, Source: "x", TimeLimit: -1},
			"bytes":           {Tenant: "t", Language: Python, Source: strings.Repeat("x", maxSource+1)},
		} {
			if _, err := p.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
	})
}

func TestRepeatable(t *testing.T) {
	t.Parallel()
	p := newPool(t, Options{PerTenant: 1})
	sources := map[Language]string{
		Python:     "import random, time, datetime, uuid\ndef f(x): return [random.random(), str(uuid.uuid4()), time.time(), datetime.datetime.now().isoformat()]",
		JavaScript: "x => [Math.random(), Date.now(), new Date(), Date()]",
	}
	for language, source := range sources {
		c := Call{Tenant: "t", Language: language, Source: source}
		var seen [4]string
		for i := range seen {
			if i == 2 {
				c.Seed, c.Now = []byte("activation 7"), time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
			}
			res, err := p.Run(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			seen[i] = string(res.Value)
		}
		if seen[0] == seen[1] {
			t.Errorf("%s: two calls without a seed gave the same %s", language, seen[0])
		}
		if seen[2] != seen[3] || !strings.Contains(seen[2], "2024-02-29T12:00:00") {
			t.Errorf("%s: two calls with one seed and clock gave %s and %s", language, seen[2], seen[3])
		}
	}
}

func TestWalls(t *testing.T) {
	t.Parallel()
	walls, err := Walls(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range walls {
		names = append(names, w.Name)
		if w.How == "" {
			t.Errorf("wall %q does not say how it stands", w.Name)
		}
		if !w.Up {
			t.Logf("this machine lacks the wall %q: %s", w.Name, w.How)
		}
	}
	if got := strings.Join(names, " "); got != "files network processes memory environment" {
		t.Errorf("walls %q", got)
	}
}
