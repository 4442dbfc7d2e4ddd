//go:build !386 && !arm && !mips && !mipsle

package sandbox

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

//go:embed javascript_bootstrap.js
var javaScriptBootstrap string // read-only

// javaScript answers calls with QuickJS. It lives in a child and is used by one goroutine.
//
// To make an engine takes longer than most programs run. So one is made, its memory is copied, and after every call the
// pages that the call wrote are put back. All memory of the engine is in the arena; none of its values is ever freed.
type javaScript struct {
	tls     *libc.TLS
	arena   *arena
	runtime uintptr
	ctx     uintptr
	global  lib.TJSValue
	given   lib.TJSValue // the function that gives an input its other names

	// What QuickJS calls. It keeps only addresses of these, so they are held here.
	hooks []any

	programs programs[lib.TJSValue] // beside its layer, the function to call
	// laid is the layer that memory has, or had before the call that is running.
	laid *layer

	stdout, stderr clipped
	asked          bool // whether the program has asked for the time or has printed
	clock          guestClock
	random         guestRandom
}

const codeFile = "<code>\x00"

// roomJS is memory inside the image that calls may use without asking the kernel.
const roomJS = 1 << 20

func newJavaScript() (*javaScript, error) {
	a, err := newArena()
	if err != nil {
		return nil, err
	}
	js := &javaScript{tls: libc.NewTLS(), arena: a}
	functions := a.malloc(uint64(unsafe.Sizeof(lib.TJSMallocFunctions{})))
	*(*lib.TJSMallocFunctions)(pointer(functions)) = lib.TJSMallocFunctions{
		Fjs_malloc:             js.hook(func(_ *libc.TLS, _ uintptr, size uint64) uintptr { return a.malloc(size) }),
		Fjs_free:               js.hook(func(_ *libc.TLS, _ uintptr, p uintptr) { a.release(p) }),
		Fjs_realloc:            js.hook(func(_ *libc.TLS, _ uintptr, p uintptr, size uint64) uintptr { return a.realloc(p, size) }),
		Fjs_malloc_usable_size: js.hook(func(_ *libc.TLS, p uintptr) uint64 { return a.room(p) }),
	}
	js.runtime = lib.XJS_NewRuntime2(js.tls, functions, 0)
	if js.runtime == 0 {
		return nil, errors.New("make a JavaScript runtime: no memory")
	}
	if js.ctx = lib.XJS_NewContext(js.tls, js.runtime); js.ctx == 0 {
		return nil, errors.New("make a JavaScript context: no memory")
	}
	js.global = lib.XJS_GetGlobalObject(js.tls, js.ctx)
	if err := js.bootstrap(); err != nil {
		return nil, err
	}
	return js, js.snapshot()
}

// hook returns the address under which translated C code calls f.
func (js *javaScript) hook(f any) uintptr {
	js.hooks = append(js.hooks, f)
	return (*[2]uintptr)(unsafe.Pointer(&f))[1]
}

func (js *javaScript) bootstrap() error {
	setup := js.eval(javaScriptBootstrap, "<sandbox>\x00")
	if isException(setup) {
		return errors.New("prepare JavaScript: " + js.thrown().message)
	}
	write := js.function(func(_ *libc.TLS, _ uintptr, _ lib.TJSValue, argc int32, argv uintptr) lib.TJSValue {
		js.asked = true
		if argc == 2 {
			stream := &js.stdout
			if first := js.argument(argv, 0); js.text(first) == "2" {
				stream = &js.stderr
			}
			stream.Write([]byte(js.text(js.argument(argv, 1))))
		}
		return lib.TJSValue{Ftag: lib.EJS_TAG_UNDEFINED}
	})
	now := js.function(func(_ *libc.TLS, _ uintptr, _ lib.TJSValue, _ int32, _ uintptr) lib.TJSValue {
		js.asked = true
		return number(float64(js.clock.now().UnixMilli()))
	})
	if js.given = js.call(setup, write, now); isException(js.given) {
		return errors.New("prepare JavaScript: " + js.thrown().message)
	}
	return nil
}

// snapshot makes what the arena holds now the state from which every call starts.
func (js *javaScript) snapshot() error {
	if !js.arena.reach(*js.arena.end() + roomJS) {
		return errors.New("prepare JavaScript: no memory")
	}
	length := int(js.arena.memory.size)
	file, err := tempImage()
	if err != nil {
		return err
	}
	if _, err := file.Write(unsafe.Slice((*byte)(js.arena.memory.base), length)); err != nil {
		return fmt.Errorf("write the interpreter's image: %w", err)
	}
	if err := js.arena.memory.adopt(file, length); err != nil {
		return err
	}
	return js.arena.memory.attach()
}

// reset undoes everything the last call has done. The next call is likely to be of the same source, so its layer stays.
func (js *javaScript) reset(context.Context) error { return js.lay(js.laid) }

// lay puts the engine to where a source has just been evaluated, or to its first state.
func (js *javaScript) lay(l *layer) error {
	js.laid = l
	js.arena.refused = false
	if err := js.arena.memory.shrink(); err != nil {
		return err
	}
	return js.arena.memory.restore(l)
}

func (js *javaScript) run(_ context.Context, q *request, printed printing) *reply {
	started := time.Now()
	js.clock.setClock(q.now)
	js.arena.memory.limit = uint64(len(js.arena.memory.image)) + uint64(q.memoryMB)<<20
	var r *reply
	if prog, err := js.program(q); err != nil {
		r = &reply{kind: replyBroken, message: err.Error()}
	} else {
		js.stdout.reset(streamLimit)
		js.stderr.reset(streamLimit)
		js.random.setSeed(q.seed)
		var state [8]byte
		js.random.Read(state[:]) // never fails
		*js.randomState() = binary.LittleEndian.Uint64(state[:]) | 1
		js.stdout.told, js.stderr.told = printed.stdout, printed.stderr
		r = js.answer(q, prog)
		js.stdout.told, js.stderr.told = nil, nil
	}
	r.stdout, r.stderr, r.duration = js.stdout.bytes(), js.stderr.bytes(), time.Since(started)
	return r
}

// randomState is where the engine draws its random numbers from.
func (js *javaScript) randomState() *uint64 {
	return &(*lib.TJSContext)(pointer(js.ctx)).Frandom_state
}

// program returns what is kept of a source, with its layer laid.
func (js *javaScript) program(q *request) (*program[lib.TJSValue], error) {
	key := programKey(q)
	prog := js.programs.getProgram(key)
	if prog == nil {
		if err := js.lay(nil); err != nil {
			return nil, err
		}
		prog = js.load(q)
		js.programs.putProgram(key, prog, 0)
		return prog, js.lay(prog.layer)
	}
	if js.laid != prog.layer {
		return prog, js.lay(prog.layer)
	}
	return prog, nil
}

// load evaluates a source once, before any input is seen. There is no layer if another evaluation could end in another
// way: when it drew a random number, asked for the time, printed, threw, or took more memory than the image has. Then
// every call evaluates for itself, and what went wrong is found and reported there.
func (js *javaScript) load(q *request) *program[lib.TJSValue] {
	prog := &program[lib.TJSValue]{}
	const still = 1
	js.asked, *js.randomState() = false, still
	value := js.eval(expression(string(q.source)), codeFile)
	if isException(value) {
		return prog
	}
	function, ok := js.entry(q, value)
	if !ok || js.asked || *js.randomState() != still || js.arena.refused || js.arena.memory.size != uint64(len(js.arena.memory.image)) {
		return prog
	}
	prog.kept, prog.layer = function, js.arena.memory.layer()
	return prog
}

func (js *javaScript) answer(q *request, prog *program[lib.TJSValue]) *reply {
	function := prog.kept
	if prog.layer == nil {
		value := js.eval(expression(string(q.source)), codeFile)
		if isException(value) {
			return js.thrown()
		}
		var ok bool
		if function, ok = js.entry(q, value); !ok {
			return &reply{kind: replyError, errorType: "ReferenceError", message: "the code defines no function; write function main(data) { ... }"}
		}
	}
	argument := js.parse(q.input)
	if len(q.aliases) > 0 && !isException(argument) {
		argument = js.call(js.given, argument, js.string(q.aliases))
	}
	if isException(argument) {
		return js.thrown()
	}
	result := js.settle(js.call(function, argument))
	if isException(result) {
		return js.thrown()
	}
	if result.Ftag == lib.EJS_TAG_UNDEFINED {
		return &reply{kind: replyValue, value: []byte("null")}
	}
	return js.encode(q, result)
}

// entry finds the function to call: the one named, else the one the source is, else the last one it defines.
func (js *javaScript) entry(q *request, value lib.TJSValue) (lib.TJSValue, bool) {
	if f, ok := js.named(string(q.entry)); ok {
		return f, true
	}
	if lib.XJS_IsFunction(js.tls, js.ctx, value) != 0 {
		return value, true
	}
	definitions := definition.FindAllSubmatch(q.source, -1)
	for i := len(definitions) - 1; i >= 0; i-- {
		name := definitions[i][1]
		if name == nil {
			name = definitions[i][2]
		}
		if f, ok := js.named(string(name)); ok {
			return f, true
		}
	}
	return lib.TJSValue{}, false
}

// The forms in which a source defines functions at the beginning of a line, and sources that are one function without a
// name, which JavaScript only takes in parentheses.
var (
	definition = regexp.MustCompile(`(?m)^(?:async[ \t]+)?function\b[ \t]*\*?[ \t]*([\p{L}_$][\p{L}\p{N}_$]*)|^(?:const|let|var)[ \t]+([\p{L}_$][\p{L}\p{N}_$]*)[ \t]*=`)
	nameless   = regexp.MustCompile(`^\s*(?:async\s+)?function\s*\*?\s*\(`)
	identifier = regexp.MustCompile(`^[\p{L}_$][\p{L}\p{N}_$]*$`)
	codeLine   = regexp.MustCompile(`<code>:(\d+)`)
)

func expression(source string) string {
	if nameless.MatchString(source) {
		return "(" + strings.TrimRight(source, " \t\r\n;") + "\n)"
	}
	return source
}

func (js *javaScript) named(name string) (lib.TJSValue, bool) {
	if !identifier.MatchString(name) {
		return lib.TJSValue{}, false
	}
	f := js.eval("typeof "+name+` === "function" ? `+name+" : undefined", "<sandbox>\x00")
	if isException(f) {
		js.thrown() // a reserved word, or a constant that was never set: not a function
		return lib.TJSValue{}, false
	}
	return f, lib.XJS_IsFunction(js.tls, js.ctx, f) != 0
}

// settle runs what a promise waits for, until it has a value or can have none.
func (js *javaScript) settle(v lib.TJSValue) lib.TJSValue {
	if isException(v) || lib.XJS_PromiseState(js.tls, js.ctx, v) < 0 {
		return v
	}
	pctx := js.arena.malloc(8)
	for lib.XJS_ExecutePendingJob(js.tls, js.runtime, pctx) > 0 {
	}
	switch lib.XJS_PromiseState(js.tls, js.ctx, v) {
	case lib.EJS_PROMISE_FULFILLED:
		return lib.XJS_PromiseResult(js.tls, js.ctx, v)
	case lib.EJS_PROMISE_REJECTED:
		return lib.XJS_Throw(js.tls, js.ctx, lib.XJS_PromiseResult(js.tls, js.ctx, v))
	}
	return js.eval(`throw new Error("the promise that the function returned never settles")`, "<sandbox>\x00")
}

// encode writes the result as JSON: plain values by itself, others as the engine does. JavaScript writes numbers that
// JSON does not have as null, so where a null stands there every value is looked at.
func (js *javaScript) encode(q *request, v lib.TJSValue) *reply {
	if b, ok := js.appendPlain(make([]byte, 0, 2*len(q.input)), v, q.outputLimit); ok && len(b) <= q.outputLimit {
		return &reply{kind: replyValue, value: b}
	}
	out, ok := js.stringify(v, lib.TJSValue{Ftag: lib.EJS_TAG_UNDEFINED})
	if ok && strings.Contains(out, "null") {
		check := js.eval(`(key, value) => {
			if (typeof value === "number" && !(value - value === 0)) throw new RangeError("JSON has no " + value);
			return value;
		}`, "<sandbox>\x00")
		out, ok = js.stringify(v, check)
	}
	if !ok {
		r := js.thrown()
		if r.kind == replyError {
			r.kind = replyInvalid
		}
		return r
	}
	switch {
	case out == "":
		return &reply{kind: replyInvalid, errorType: "TypeError", message: "a function or symbol has no form in JSON"}
	case len(out) > q.outputLimit:
		return &reply{kind: replyLimit, limit: limitOutput}
	}
	return &reply{kind: replyValue, value: []byte(out)}
}

func (js *javaScript) stringify(v, replacer lib.TJSValue) (string, bool) {
	s := lib.XJS_JSONStringify(js.tls, js.ctx, v, replacer, lib.TJSValue{Ftag: lib.EJS_TAG_UNDEFINED})
	if isException(s) {
		return "", false
	}
	if s.Ftag == lib.EJS_TAG_UNDEFINED {
		return "", true
	}
	return js.text(s), true
}

// thrown reports the pending exception.
func (js *javaScript) thrown() *reply {
	e := lib.XJS_GetException(js.tls, js.ctx)
	if js.arena.refused {
		return &reply{kind: replyLimit, limit: limitMemory}
	}
	r := &reply{kind: replyError}
	if lib.XJS_IsError(js.tls, js.ctx, e) == 0 {
		r.message = js.text(e)
		return r
	}
	r.errorType, r.message = js.property(e, "name\x00"), js.property(e, "message\x00")
	stack := js.property(e, "stack\x00")
	if m := codeLine.FindStringSubmatch(stack); m != nil {
		r.line, _ = strconv.Atoi(m[1]) // digits only; a number beyond int is not a line
	}
	r.message = r.message[:min(len(r.message), 4000)]
	frames := strings.SplitAfterN(stack[:min(len(stack), 16000)], "\n", 21)
	r.traceback = r.errorType + ": " + r.message + "\n" + strings.Join(frames[:min(len(frames), 20)], "")
	return r
}

func (js *javaScript) property(v lib.TJSValue, name string) string {
	p := lib.XJS_GetPropertyStr(js.tls, js.ctx, v, js.cString(name))
	if isException(p) {
		lib.XJS_GetException(js.tls, js.ctx)
		return ""
	}
	return js.text(p)
}

// text returns a value as String would; what cannot be turned into text is empty.
func (js *javaScript) text(v lib.TJSValue) string {
	length := js.arena.malloc(8)
	if length == 0 {
		return ""
	}
	s := lib.XJS_ToCStringLen2(js.tls, js.ctx, length, v, 0)
	if s == 0 {
		lib.XJS_GetException(js.tls, js.ctx)
		return ""
	}
	n := *(*uint64)(pointer(length))
	return string(unsafe.Slice((*byte)(pointer(s)), n))
}

func (js *javaScript) eval(source, file string) lib.TJSValue {
	s := js.cString(source + "\x00")
	if s == 0 {
		return lib.TJSValue{Ftag: lib.EJS_TAG_EXCEPTION}
	}
	return lib.XJS_Eval(js.tls, js.ctx, s, uint64(len(source)), js.cString(file), lib.MJS_EVAL_TYPE_GLOBAL)
}

func (js *javaScript) parse(input []byte) lib.TJSValue {
	s := js.cString(string(input) + "\x00")
	if s == 0 {
		return lib.TJSValue{Ftag: lib.EJS_TAG_EXCEPTION}
	}
	return lib.XJS_ParseJSON(js.tls, js.ctx, s, uint64(len(input)), js.cString("<input>\x00"))
}

func (js *javaScript) string(text []byte) lib.TJSValue {
	s := js.cString(string(text) + "\x00")
	if s == 0 {
		return lib.TJSValue{Ftag: lib.EJS_TAG_EXCEPTION}
	}
	return lib.XJS_NewStringLen(js.tls, js.ctx, s, uint64(len(text)))
}

func (js *javaScript) call(f lib.TJSValue, args ...lib.TJSValue) lib.TJSValue {
	size := unsafe.Sizeof(lib.TJSValue{})
	argv := js.arena.malloc(uint64(size) * uint64(len(args)))
	if argv == 0 {
		return lib.TJSValue{Ftag: lib.EJS_TAG_EXCEPTION}
	}
	for i, v := range args {
		*(*lib.TJSValue)(pointer(argv + uintptr(i)*size)) = v
	}
	return lib.XJS_Call(js.tls, js.ctx, f, lib.TJSValue{Ftag: lib.EJS_TAG_UNDEFINED}, int32(len(args)), argv)
}

func (js *javaScript) argument(argv uintptr, i uintptr) lib.TJSValue {
	return *(*lib.TJSValue)(pointer(argv + i*unsafe.Sizeof(lib.TJSValue{})))
}

// function makes a JavaScript function of a Go one.
func (js *javaScript) function(f func(*libc.TLS, uintptr, lib.TJSValue, int32, uintptr) lib.TJSValue) lib.TJSValue {
	return lib.XJS_NewCFunction2(js.tls, js.ctx, js.hook(f), js.cString("host\x00"), 0, lib.EJS_CFUNC_generic, 0)
}

// cString copies text, which must end in a zero byte, to where the engine can read it. It is freed with the call.
func (js *javaScript) cString(s string) uintptr {
	p := js.arena.malloc(uint64(len(s)))
	if p != 0 {
		copy(unsafe.Slice((*byte)(pointer(p)), len(s)), s)
	}
	return p
}

func number(f float64) (v lib.TJSValue) {
	*(*float64)(unsafe.Pointer(&v)) = f
	v.Ftag = lib.EJS_TAG_FLOAT64
	return v
}

func isException(v lib.TJSValue) bool { return v.Ftag == lib.EJS_TAG_EXCEPTION }

// pointer makes a pointer of an address in the arena, which the garbage collector neither moves nor looks at.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
