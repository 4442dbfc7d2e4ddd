package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tandem/fault"
)

// step is one call of a sequence that goes to one child, and what it must return.
type step struct{ source, value string }

// TestSnapshot_Isolation runs sources several times and in turns: each call must find its source as it was loaded.
func TestSnapshot_Isolation(t *testing.T) {
	t.Parallel()
	for language, sequences := range map[Language]map[string][]step{
		Python: {
			"globals": {
				{source: "n = [0]\nm = 0\ndef f(x):\n  global m\n  m += 1\n  n.append(x)\n  globals()['new'] = 1\n  return [m, n, 'other' in globals()]", value: "[1,[0,1],false]"},
			},
			"mutated default": {
				{source: "def f(x, seen=[], by={}):\n  seen.append(x)\n  by[x] = len(by)\n  return [seen, len(by)]", value: "[[1],1]"},
			},
			"caches and closures": {
				{source: "import functools\nmade = []\n@functools.cache\ndef g(x):\n  made.append(x)\n  return len(made)\ndef counter():\n  n = 0\n  def inc():\n    nonlocal n\n    n += 1\n    return n\n  return inc\ninc = counter()\ngen = iter(range(10))\ndef f(x): return [g(x), g(x), inc(), next(gen)]", value: "[1,1,1,0]"},
			},
			"classes": {
				{source: "class A:\n  n = 0\n  all = []\ndef f(x):\n  A.n += 1\n  A.all.append(A())\n  A.m = 1\n  return [A.n, len(A.all)]", value: "[1,1]"},
			},
			"patched builtins": {
				{source: "import builtins\nseen = len('abc')\ndef f(x):\n  r = [seen, len('ab'), hasattr(builtins, 'kept'), str(1)]\n  builtins.len = lambda v: 99\n  builtins.str = lambda v: 'bad'\n  builtins.kept = 1\n  return r", value: `[3,2,false,"1"]`},
				{source: "def f(x): return [len('abcd'), str(2)]", value: `[4,"2"]`},
			},
			"patched while loading": {
				{source: "import builtins, json\nbuiltins.len = lambda v: 99\njson.mine = 1\ndef f(x): return [len(''), json.mine]", value: "[99,1]"},
				{source: "import json\ndef f(x): return [len(''), hasattr(json, 'mine')]", value: "[0,false]"},
			},
			"state of modules": {
				{source: "import decimal, json, sys, collections\ndef f(x):\n  p = decimal.getcontext().prec\n  decimal.getcontext().prec = 3\n  json.n = getattr(json, 'n', 0) + 1\n  sys.path.append('x')\n  collections.Counter.n = 1\n  return [p, json.n, sys.path.count('x')]", value: "[28,1,1]"},
				{source: "import decimal\ndecimal.getcontext().prec = 5\ndef f(x): return decimal.getcontext().prec", value: "5"},
				{source: "import decimal\ndef f(x): return decimal.getcontext().prec", value: "28"},
			},
			"a module imported while loading": {
				{source: "import calendar\ndef f(x):\n  d = calendar.firstweekday()\n  calendar.setfirstweekday(3)\n  return d", value: "0"},
				{source: "import sys\ndef f(x): return 'calendar' in sys.modules", value: "false"},
			},
			"entries of one source": {
				{source: "n = []\ndef main(x):\n  n.append(1)\n  return ['main', len(n)]\ndef other(x): return ['other', len(n)]", value: `["other",0]`},
			},
			"exceptions": {
				{source: "n = []\ndef f(x):\n  n.append(1)\n  try:\n    raise ValueError(n)\n  except ValueError as e:\n    return len(e.args[0])", value: "1"},
			},
			"streams": {
				{source: "import os, sys\ndef f(x):\n  for fd in (0, 1, 2):\n    try: os.close(fd)\n    except OSError: pass\n  return 1", value: "1"},
				{source: "import os\ndef f(x): return [os.write(1, b''), os.write(2, b''), len(os.read(0, 9))]", value: "[0,0,0]"},
			},
		},
		JavaScript: {
			"globals": {
				{source: "let n = 0; const all = [0]; var v = 1;\nfunction f(x) { n++; v++; all.push(x); globalThis.kept = (globalThis.kept ?? 0) + 1; return [n, v, all, kept]; }", value: "[1,2,[0,1],1]"},
			},
			"prototypes": {
				{source: "x => { const r = [{}.p, [].map.name, typeof Object.prototype.toJSON]; Object.prototype.p = 1; Array.prototype.map = () => 0; Object.prototype.toJSON = undefined; return r; }", value: `[null,"map","undefined"]`},
				{source: "x => [{}.p, [1].map(y => y)]", value: "[null,[1]]"},
			},
			"prototypes changed while loading": {
				{source: "Object.prototype.mine = 7; Array.prototype.toJSON = function () { return 'array' }; 0;\nfunction f(x) { return {a: {}.mine, b: [1]}; }", value: `{"a":7,"b":"array"}`},
				{source: "x => [{}.mine, [1]]", value: "[null,[1]]"},
			},
			"closures and generators": {
				{source: "const inc = (() => { let n = 0; return () => ++n; })(); const gen = (function* () { yield 1; yield 2; })(); class A { static n = 0 }\nfunction f(x) { A.n++; return [inc(), gen.next().value, A.n]; }", value: "[1,1,1]"},
			},
			"regular expressions": {
				{source: "const r = /a/g;\nfunction f(x) { return [r.test('aa'), r.lastIndex]; }", value: "[true,1]"},
			},
			"promises made while loading": {
				{source: "let n = 0; const p = Promise.resolve(1).then(v => { n += v; return n; });\nasync function f(x) { return [await p, n]; }", value: "[1,1]"},
			},
			"patched globals": {
				{source: "x => { const r = [Math.max(1, 2), JSON.stringify([1]), parseInt('7')]; Math.max = JSON.stringify = globalThis.parseInt = () => 'bad'; return r; }", value: `[2,"[1]",7]`},
			},
		},
	} {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			p := newPool(t, Options{PerTenant: 1})
			ask := func(name string, s step) {
				c := Call{Tenant: "t", Language: language, Source: s.source, Input: json.RawMessage("1")}
				res, err := p.Run(t.Context(), c)
				if err != nil || string(res.Value) != s.value {
					t.Errorf("%s: %s gave %s, %v; want %s", name, s.source, res.Value, err, s.value)
				}
			}
			var all []step
			for name, steps := range sequences {
				for range 3 {
					for _, s := range steps {
						ask(name, s)
						ask(name, s)
					}
				}
				all = append(all, steps...)
			}
			for range 2 {
				for _, s := range all {
					ask("in turns", s)
				}
			}
		})
	}
}

// TestSnapshot_Loading is about sources that do something when they are loaded.
func TestSnapshot_Loading(t *testing.T) {
	t.Parallel()
	p := newPool(t, Options{PerTenant: 1})
	run := func(t *testing.T, language Language, source string, more ...func(*Call)) (Result, error) {
		c := Call{Tenant: t.Name(), Language: language, Source: source, Input: json.RawMessage("1")}
		for _, f := range more {
			f(&c)
		}
		return p.Run(t.Context(), c)
	}
	t.Run("Raises", func(t *testing.T) {
		t.Parallel()
		for language, source := range map[Language]string{
			Python:     "n = globals().setdefault('n', 0) + 1\nimport json\njson.broken = 1\nraise ValueError('at loading ' + str(n))",
			JavaScript: "globalThis.n = (globalThis.n ?? 0) + 1;\nglobalThis.broken = 1;\n\nthrow new RangeError('at loading ' + n)",
		} {
			for range 3 {
				if _, err := run(t, language, source); code(err) != fault.CodeError || !strings.Contains(err.Error(), "line 4:") || !strings.Contains(err.Error(), "at loading 1") {
					t.Errorf("%s: error %v", language, err)
				}
			}
		}
		if res, err := run(t, Python, "import json\ndef f(x): return hasattr(json, 'broken')"); err != nil || string(res.Value) != "false" {
			t.Errorf("the call after it gave %s, %v", res.Value, err)
		}
		if res, err := run(t, JavaScript, "x => typeof broken"); err != nil || string(res.Value) != `"undefined"` {
			t.Errorf("the call after it gave %s, %v", res.Value, err)
		}
	})
	// What is drawn while loading is drawn anew by every call, and repeated only for the same seed.
	t.Run("Random", func(t *testing.T) {
		t.Parallel()
		for name, c := range map[string]struct {
			language Language
			source   string
		}{
			"random":            {Python, "import random\nn = random.random()\ndef f(x): return n"},
			"random from":       {Python, "from random import getrandbits\nn = getrandbits(60)\ndef f(x): return n"},
			"gauss":             {Python, "import random\nrandom.gauss()\ndef f(x): return random.gauss()"},
			"own generator":     {Python, "import random\nr = random.Random()\ndef f(x): return r.random()"},
			"drawn in the call": {Python, "import random\ndef f(x): return random.random()"},
			"bound early":       {Python, "from random import random as draw\ndef f(x): return draw()"},
			"imported late":     {Python, "def f(x):\n  import random\n  return random.random()"},
			"statistics":        {Python, "import statistics\ndef f(x): return statistics.NormalDist().samples(2)"},
			"shuffled":          {Python, "import random\nl = list(range(50))\nrandom.shuffle(l)\ndef f(x): return l"},
			"os":                {Python, "import os\nn = os.urandom(8).hex()\ndef f(x): return n"},
			"secrets":           {Python, "import secrets\nn = secrets.token_hex()\ndef f(x): return n"},
			"secrets in call":   {Python, "import secrets\ndef f(x): return secrets.token_hex()"},
			"uuid":              {Python, "import uuid\nn = str(uuid.uuid4())\ndef f(x): return n"},
			"system":            {Python, "import random\nr = random.SystemRandom()\nn = r.random()\ndef f(x): return [n, r.random()]"},
			"Math":              {JavaScript, "const n = Math.random();\nfunction f(x) { return n }"},
			"Math in the call":  {JavaScript, "x => Math.random()"},
		} {
			var got []string
			for i := range 6 {
				res, err := run(t, c.language, c.source, func(c *Call) {
					if i >= 3 {
						c.Seed = []byte("seed " + fmt.Sprint(i/5))
					}
				})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got = append(got, string(res.Value))
			}
			if got[3] != got[4] || got[4] == got[5] {
				t.Errorf("%s: the same seed twice and then another gave %q", name, got[3:])
			}
			if slices.Sort(got); len(slices.Compact(got)) != 5 {
				t.Errorf("%s: without a seed a sequence repeats: %q", name, got)
			}
		}
	})
	t.Run("SeedsItself", func(t *testing.T) {
		t.Parallel()
		for range 3 {
			res, err := run(t, Python, "import random\nrandom.seed(1)\ndef f(x): return random.randint(1, 100)")
			if err != nil || string(res.Value) != "18" {
				t.Errorf("%s, %v", res.Value, err)
			}
		}
	})
	t.Run("Time", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			language Language
			source   string
		}{
			{Python, "import time\nat = time.time()\ndef f(x): return int(at)"},
			{Python, "import datetime\nat = datetime.datetime.now(datetime.timezone.utc)\ndef f(x): return int(at.timestamp())"},
			{JavaScript, "const at = Date.now();\nfunction f(x) { return Math.floor(at / 1000) }"},
			{JavaScript, "const at = new Date();\nfunction f(x) { return Math.floor(at.getTime() / 1000) }"},
		} {
			for _, second := range []int64{1e9, 2e9, 1e9} {
				res, err := run(t, c.language, c.source, func(c *Call) { c.Now = time.Unix(second, 0) })
				if err != nil || string(res.Value) != fmt.Sprint(second) {
					t.Errorf("%s: %s, %v; want %d", c.source, res.Value, err, second)
				}
			}
		}
	})
	t.Run("Prints", func(t *testing.T) {
		t.Parallel()
		for language, source := range map[Language]string{
			Python:     "import sys\nprint('loaded')\nprint('warned', file=sys.stderr)\ndef f(x):\n  print('called')\n  return 1",
			JavaScript: "console.log('loaded'); console.error('warned');\nfunction f(x) { console.log('called'); return 1 }",
		} {
			for range 3 {
				res, err := run(t, language, source)
				if err != nil || res.Stdout != "loaded\ncalled\n" || res.Stderr != "warned\n" {
					t.Errorf("%s: stdout %q, stderr %q, %v", language, res.Stdout, res.Stderr, err)
				}
			}
		}
	})
	t.Run("NeedsMemory", func(t *testing.T) {
		t.Parallel()
		for language, source := range map[Language]string{
			Python:     "big = bytearray(60 << 20)\ndef f(x):\n  big[0] += 1\n  return [len(big), big[0]]",
			JavaScript: "const big = new Uint8Array(60 << 20);\nfunction f(x) { big[0]++; return [big.length, big[0]] }",
		} {
			for _, memory := range []int{16, 128, 16, 128} {
				res, err := run(t, language, source, func(c *Call) { c.MemoryMB = memory })
				if memory == 16 && code(err) != fault.CodeLimit || memory == 128 && string(res.Value) != fmt.Sprintf("[%d,1]", 60<<20) {
					t.Errorf("%s with %d MB: %s, %v", language, memory, res.Value, err)
				}
			}
		}
	})
	t.Run("ReadsInput", func(t *testing.T) {
		t.Parallel()
		for _, pad := range []int{0, readAtOnce} {
			source := "import sys\ntext = sys.stdin.read()\ndef f(x): return [text, x]\n#" + strings.Repeat("x", pad)
			for range 2 {
				if res, err := run(t, Python, source); err != nil || string(res.Value) != `["",1]` {
					t.Errorf("%s, %v", res.Value, err)
				}
			}
		}
	})
	t.Run("NamesAnEntry", func(t *testing.T) {
		t.Parallel()
		for language, source := range map[Language]string{
			Python:     "n = []\ndef a(x):\n  n.append(1)\n  return ['a', len(n)]\ndef b(x):\n  n.append(1)\n  return ['b', len(n)]",
			JavaScript: "const n = [];\nfunction a(x) { n.push(1); return ['a', n.length] }\nfunction b(x) { n.push(1); return ['b', n.length] }",
		} {
			for _, entry := range []string{"a", "b", "a", "", "a"} {
				want := entry
				if want == "" {
					want = "b"
				}
				res, err := run(t, language, source, func(c *Call) { c.Entry = entry })
				if err != nil || string(res.Value) != fmt.Sprintf(`[%q,1]`, want) {
					t.Errorf("%s, entry %q: %s, %v", language, entry, res.Value, err)
				}
			}
		}
	})
}

// TestPrograms_StayWithinBounds fills the store of sources: what is kept is what was used last.
func TestPrograms_StayWithinBounds(t *testing.T) {
	t.Parallel()
	var kept programs[int]
	key := func(i int) [32]byte { return programKey(&request{source: fmt.Append(nil, i)}) }
	for i := range 3 * maxPrograms {
		kept.putProgram(key(i), &program[int]{kept: i}, 1)
		if kept.getProgram(key(0)) == nil {
			t.Fatalf("the source used in between was given up after %d others", i)
		}
	}
	if len(kept.by) != maxPrograms || kept.size != maxPrograms {
		t.Errorf("%d sources of %d bytes are kept", len(kept.by), kept.size)
	}
	page := make([]byte, 1<<20)
	for i := range 40 {
		kept.putProgram(key(-1-i), &program[int]{layer: &layer{bytes: page}}, 0)
	}
	if kept.size > maxProgramBytes || kept.getProgram(key(-40)) == nil || kept.getProgram(key(-1)) != nil {
		t.Errorf("%d sources of %d bytes are kept", len(kept.by), kept.size)
	}
	kept.putProgram(key(-41), &program[int]{layer: &layer{bytes: make([]byte, 2*maxProgramBytes)}}, 0)
	if len(kept.by) != 1 || kept.getProgram(key(-41)) == nil {
		t.Errorf("%d sources are kept beside one that is too large", len(kept.by))
	}
	if programKey(&request{source: []byte("ab"), entry: []byte("c")}) == programKey(&request{source: []byte("a"), entry: []byte("bc")}) {
		t.Error("two sources have the same key")
	}
}

// TestCache_IsSwept checks which versions of the interpreter leave the cache directory when another is added.
func TestCache_IsSwept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	long, now := time.Now().Add(-30*24*time.Hour), time.Now()
	home, err := cacheHome(dir, cachePrefix+"this")
	if err != nil {
		t.Fatal(err)
	}
	older, err := cacheHome(dir, cachePrefix+"another")
	if err != nil {
		t.Fatal(err)
	}
	if home == older {
		t.Fatalf("two versions share %s", home)
	}
	for name, at := range map[string]time.Time{filepath.Base(home): long, filepath.Base(older): long, cachePrefix + "recent": now, cachePrefix + "left.image": long, "not-ours": long} {
		path := filepath.Join(dir, name)
		if strings.Contains(name, ".") {
			err = os.WriteFile(path, []byte("x"), 0o600)
		} else if err = os.MkdirAll(path, 0o700); err == nil {
			err = os.WriteFile(filepath.Join(path, imageName), []byte("x"), 0o600)
		}
		if err == nil {
			err = os.Chtimes(path, at, at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// A child that uses a version still has its files when they are gone from the directory.
	open, err := os.Open(filepath.Join(older, imageName))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if err := sweepCache(home, now.Add(-cacheAge)); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"not-ours", cachePrefix + "recent", filepath.Base(home)}; !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
	if b, err := io.ReadAll(open); err != nil || string(b) != "x" {
		t.Errorf("an open file of the version that was removed holds %q, %v", b, err)
	}
	// A child that starts marks its version, and it stays.
	if _, err := cacheHome(dir, cachePrefix+"another"); err != nil {
		t.Fatal(err)
	}
	if err := sweepCache(home, now.Add(-cacheAge)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(older); err != nil {
		t.Error(err)
	}
}

// TestGuestMemory_Restore writes at random, takes layers and goes from one to the other: memory is always exactly what it
// was, whichever way the private pages are found.
func TestGuestMemory_Restore(t *testing.T) {
	t.Parallel()
	const pages = 2000
	m, err := newGuestMemory()
	if err != nil {
		t.Fatal(err)
	}
	file, err := tempImage()
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	first := make([]byte, pages*pageSize)
	for i := range first {
		first[i] = byte(rnd.Uint32())
	}
	if _, err := file.Write(first); err != nil {
		t.Fatal(err)
	}
	live := m.Reallocate(uint64(len(first)))
	if err := m.adopt(file, len(first)); err != nil {
		t.Fatal(err)
	}
	if err := m.attach(); err != nil {
		t.Fatal(err)
	}
	layers, wanted := []*layer{nil}, [][]byte{first}
	now := 0
	for i := range 300 {
		n := rnd.IntN(40)
		if i%50 == 0 {
			n = 1500 // so many that they are given up together
		}
		for range n {
			at := rnd.IntN(len(first)) / (1 + rnd.IntN(20))
			live[at] = byte(rnd.Uint32())
		}
		if i%10 == 0 && len(layers) < 20 {
			layers, wanted = append(layers, m.layer()), append(wanted, bytes.Clone(live))
		}
		if rnd.IntN(3) == 0 {
			now = rnd.IntN(len(layers))
		}
		if err := m.restore(layers[now]); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(live, wanted[now]) {
			t.Fatalf("after step %d memory is not that of layer %d", i, now)
		}
	}
}
