package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/table"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// python answers calls with CPython on WebAssembly. It lives in a child and is used by one goroutine.
//
// Every call starts from the same image of a started interpreter: before a call only the pages that the last one wrote
// are put back. The guest has three streams, a clock and random bytes, and nothing else: no directory, no socket.
type python struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	memory   *guestMemory
	image    pythonImage

	// The instance: made anew when a call has ended it or made it grow.
	module api.Module
	stack  api.MutableGlobal
	call   api.Function

	programs programs[pythonCode]
	// laid is the layer that memory has, or had before the call that is running.
	laid *layer

	seen           map[string]uint32 // room for appendValue
	stdin, payload []byte
	ends           int  // how often the guest was told that its input is at its end
	asked          bool // whether the guest has asked for time or randomness, or has printed
	stdout, stderr clipped
	starting       bool
	clock          guestClock
	random         guestRandom
}

// pythonCode is a compiled source in Python's own serialised form, for sources that every call loads anew.
type pythonCode []byte

// What the function of the bootstrap is asked to do.
const (
	askCompile = iota // (source)
	askLoad           // (code, source, entry)
	askCall           // (seed, whether the argument is JSON, argument), once loaded
	askBoth           // (code, source, entry, seed, whether the argument is JSON, argument)
)

// readAtOnce is how much of a request the bootstrap reads first; a request that is shorter is not read to its end.
const readAtOnce = 1 << 16

// newPython makes an interpreter and brings it to where calls begin. What is compiled is kept in the cache in dir, if there is
// one: one process fills it, while others that come meanwhile wait; what is damaged, or may have been written by somebody else, is
// made anew. It is the only part that touches files.
func newPython(ctx context.Context, dir string) (*python, error) {
	module, err := pythonModule()
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return compilePython(ctx, module, "")
	}
	name, err := cacheName()
	if err != nil {
		return nil, err
	}
	home, err := cacheHome(dir, name)
	if err != nil {
		return nil, err
	}
	var broken error
	if filled(home) {
		if broken = allOurs(home); broken == nil {
			p, err := compilePython(ctx, module, home)
			if err == nil {
				return p, nil
			}
			broken = err
		}
	}
	unlock, err := lockCache(home)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if broken != nil || allOurs(home) != nil {
		if err := emptyCache(home); err != nil {
			return nil, fmt.Errorf("empty a cache that cannot be used: %w", errors.Join(err, broken))
		}
	}
	if err := dropUnfinished(home); err != nil {
		return nil, fmt.Errorf("remove what was left unfinished in the cache: %w", err)
	}
	return compilePython(ctx, module, home)
}

// compilePython compiles the interpreter, or takes it from a directory of the cache.
func compilePython(ctx context.Context, module []byte, home string) (*python, error) {
	config := wazero.NewRuntimeConfig().WithDebugInfoEnabled(false).WithMemoryLimitPages(reservedMemory >> 16)
	if home != "" {
		cache, err := wazero.NewCompilationCacheWithDir(home)
		if err != nil {
			return nil, fmt.Errorf("open the cache of compiled modules: %w", err)
		}
		config = config.WithCompilationCache(cache)
	}
	p := &python{seen: make(map[string]uint32), runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	var err error
	if err := p.instantiateHost(ctx); err != nil {
		return nil, fmt.Errorf("prepare the interpreter's host: %w", err)
	}
	p.compiled, err = p.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.NumCPU()), module)
	if err != nil {
		return nil, fmt.Errorf("compile the interpreter: %w", err)
	}
	if p.memory, err = newGuestMemory(); err != nil {
		return nil, err
	}
	if err := p.loadImage(ctx, home); err != nil {
		return nil, err
	}
	return p, p.renew(ctx)
}

// instantiateHost offers the guest what WASI has, without what would change the state of the host: what one call closed
// would be closed for the next.
func (p *python) instantiateHost(ctx context.Context) error {
	const done, badFile, unsupported = 0, 8, 58 // numbers of WASI
	host := p.runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(host)
	host.NewFunctionBuilder().WithFunc(func(fd uint32) uint32 {
		if fd <= 2 {
			return done
		}
		return badFile
	}).Export("fd_close")
	host.NewFunctionBuilder().WithFunc(func(_, _ uint32) uint32 { return unsupported }).Export("fd_fdstat_set_flags")
	host.NewFunctionBuilder().WithFunc(p.pollOneoff).Export("poll_oneoff")
	_, err := host.Instantiate(ctx)
	return err
}

// pollOneoff lets the guest wait for a time, which is all that it can wait for: time.sleep waits for a moment of the monotonic
// clock. How long that may take is bounded by the time limit of the call, as for anything else that code does.
func (p *python) pollOneoff(_ context.Context, mod api.Module, in, out, count, written uint32) uint32 {
	const done, fault, invalid, unsupported = 0, 21, 28, 58 // numbers of WASI
	const subscription, event = 48, 32                      // sizes of its records
	memory := mod.Memory()
	if count != 1 {
		return unsupported
	}
	asked, ok1 := memory.Read(in, subscription)
	answer, ok2 := memory.Read(out, event)
	if !ok1 || !ok2 || !memory.WriteUint32Le(written, 1) {
		return fault
	}
	const clock, realtime, absolute = 0, 0, 1
	if asked[8] != clock {
		return unsupported
	}
	until := time.Duration(binary.LittleEndian.Uint64(asked[24:]))
	if until < 0 {
		return invalid
	}
	p.asked = true
	if binary.LittleEndian.Uint16(asked[40:])&absolute != 0 {
		now := p.clock.nano()
		if binary.LittleEndian.Uint32(asked[16:]) == realtime {
			now = p.clock.now().UnixNano()
		}
		until -= time.Duration(now)
	}
	time.Sleep(until) // a clock that the call has fixed stays where it is
	clear(answer)
	copy(answer, asked[:8]) // whose event it is; no error; a clock
	return done
}

// instantiate makes an instance over the process's one linear memory, ending the one before.
func (p *python) instantiate(ctx context.Context) (api.Module, error) {
	if p.module != nil {
		if err := p.module.Close(ctx); err != nil {
			return nil, fmt.Errorf("end the interpreter: %w", err)
		}
	}
	p.memory.limit = reservedMemory
	allocate := func(_, _ uint64) experimental.LinearMemory { return p.memory }
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(allocate))
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithArgs("python", "-S", "-B", "-s", "-P", "-X", "utf8", "-c", pythonBootstrap).
		// Sets and dictionaries come in the same order in every call.
		WithEnv("PYTHONHASHSEED", "0").
		WithStdin(guestInput{p}).WithStdout(guestOutput{p, &p.stdout}).WithStderr(guestOutput{p, &p.stderr}).
		WithWalltime(p.walltime, sys.ClockResolution(time.Microsecond)).
		WithNanotime(func() int64 { p.asked = true; return p.clock.nano() }, sys.ClockResolution(time.Microsecond)).
		WithRandSource(guestBytes{p})
	mod, err := p.runtime.InstantiateModule(ctx, p.compiled, config)
	if err != nil {
		return nil, fmt.Errorf("make an interpreter: %w", err)
	}
	p.module = mod
	return mod, nil
}

// renew replaces the instance by one on the image.
func (p *python) renew(ctx context.Context) error {
	mod, err := p.instantiate(ctx)
	if err != nil {
		return err
	}
	if missing := p.image.length - int(mod.Memory().Size()); missing > 0 {
		if _, ok := mod.Memory().Grow(uint32(missing >> 16)); !ok {
			return errors.New("make an interpreter: no memory for its image")
		}
	}
	if err := p.memory.attach(); err != nil {
		return err
	}
	global, ok := mod.ExportedGlobal(stackPointer).(api.MutableGlobal)
	if !ok {
		return errors.New("make an interpreter: its stack pointer cannot be set")
	}
	p.stack = global
	params, results := vectorcall()
	p.call = table.LookupFunction(mod, 0, p.image.entry, params, results)
	return nil
}

// reset undoes everything the last call has done to the interpreter. Nothing a call can reach outlives it: memory and
// the stack pointer are put back, and there is no other state in a WebAssembly instance of this module (its one table
// and its code are never written, its three streams cannot be closed). An instance that has grown, ended or was left in
// a trap is replaced. The next call is likely to be of the same source, so its layer stays.
func (p *python) reset(ctx context.Context) error { return p.lay(ctx, p.laid) }

// lay puts the interpreter to where a source has just been loaded, or to its first state.
func (p *python) lay(ctx context.Context, l *layer) error {
	p.laid = l
	if p.grown() {
		if err := p.renew(ctx); err != nil {
			return err
		}
	}
	return p.memory.restore(l)
}

func (p *python) grown() bool {
	return p.module.IsClosed() || int(p.module.Memory().Size()) != p.image.length
}

func (p *python) run(ctx context.Context, q *request, printed printing) *reply {
	started := time.Now()
	p.stdout.reset(streamLimit)
	p.stderr.reset(streamLimit)
	p.clock.setClock(q.now)
	p.random.setSeed(q.seed)
	p.memory.limit = uint64(p.image.length) + uint64(max(q.memoryMB-imageRoomMB, 0))<<20
	r := &reply{}
	if prog, err := p.program(ctx, r, q); err != nil {
		r.kind, r.message = replyBroken, err.Error()
	} else if prog != nil {
		p.stdout.told, p.stderr.told = printed.stdout, printed.stderr
		p.execute(ctx, r, q, prog)
		p.stdout.told, p.stderr.told = nil, nil
	}
	r.stdout, r.stderr, r.duration = p.stdout.bytes(), p.stderr.bytes(), time.Since(started)
	return r
}

// program returns what is needed to call a source, with its layer laid. Where there is none r says why.
//
// A source is compiled by an interpreter that has run nothing, and loaded by one that has seen no input, no time and no
// randomness; so what is kept of both is the same, no matter who calls.
func (p *python) program(ctx context.Context, r *reply, q *request) (*program[pythonCode], error) {
	key := programKey(q)
	prog := p.programs.getProgram(key)
	if prog == nil {
		if err := p.lay(ctx, nil); err != nil {
			return nil, err
		}
		code := p.compile(ctx, r, q.source)
		if code == nil {
			return nil, nil
		}
		if err := p.lay(ctx, nil); err != nil {
			return nil, err
		}
		prog = &program[pythonCode]{layer: p.load(ctx, q, code)}
		if prog.layer == nil {
			prog.kept = code
		}
		p.programs.putProgram(key, prog, len(prog.kept))
		p.stdout.reset(streamLimit)
		p.stderr.reset(streamLimit)
		p.random.setSeed(q.seed)
		return prog, p.lay(ctx, prog.layer)
	}
	if p.laid != prog.layer {
		return prog, p.lay(ctx, prog.layer)
	}
	return prog, nil
}

// compile returns the code object of a source, or nil and the reason in r.
func (p *python) compile(ctx context.Context, r *reply, source []byte) pythonCode {
	p.payload = appendMarshal(append(p.payload[:0], marshalTuple, 2, marshalInt, askCompile, 0, 0, 0), marshalText, source)
	kind, out, ok := p.invoke(ctx, r)
	if !ok {
		return nil
	}
	if kind != 'C' {
		r.refuse(kind, out)
		return nil
	}
	return bytes.Clone(out)
}

// load runs the source once and returns what that made of memory; nil if another run could make something else of it.
func (p *python) load(ctx context.Context, q *request, code pythonCode) *layer {
	b := append(p.payload[:0], marshalTuple, 4, marshalInt, askLoad, 0, 0, 0)
	b = appendMarshal(b, marshalBytes, code)
	b = appendMarshal(b, marshalText, q.source)
	p.payload = appendMarshal(b, marshalText, q.entry)
	p.asked = false
	// What went wrong is found again, and reported, by the call.
	kind, _, ok := p.invoke(ctx, &reply{})
	ends := 0 // the bootstrap reads long requests to their end
	if len(p.payload) >= readAtOnce {
		ends = 1
	}
	if !ok || kind != 'L' || p.asked || p.ends > ends || p.grown() {
		return nil
	}
	return p.memory.layer()
}

func (p *python) execute(ctx context.Context, r *reply, q *request, prog *program[pythonCode]) {
	seed := q.seed
	if len(seed) == 0 {
		seed = p.random.fresh()
	}
	b := p.payload[:0]
	if prog.layer != nil {
		b = append(b, marshalTuple, 5, marshalInt, askCall, 0, 0, 0)
	} else {
		b = append(b, marshalTuple, 8, marshalInt, askBoth, 0, 0, 0)
		b = appendMarshal(b, marshalBytes, prog.kept)
		b = appendMarshal(b, marshalText, q.source)
		b = appendMarshal(b, marshalText, q.entry)
	}
	b = appendMarshal(b, marshalBytes, seed)
	b = appendMarshal(b, marshalText, q.aliases)
	if v, ok := appendValue(append(b, marshalFalse), q.input, p.seen); ok {
		p.payload = v
	} else {
		p.payload = appendMarshal(append(b, marshalTrue), marshalText, q.input)
	}
	kind, out, ok := p.invoke(ctx, r)
	if ok && kind == 'v' {
		var err error
		out, err = appendJSON(make([]byte, 0, 2*len(out)), out, q.outputLimit)
		if errors.Is(err, errTooLong) {
			r.kind, r.limit = replyLimit, limitOutput
			return
		}
		if err != nil {
			r.kind, r.message = replyInvalid, err.Error()
			return
		}
		kind = 'V'
	}
	switch {
	case !ok:
	case kind != 'V':
		r.refuse(kind, out)
	case len(out) > q.outputLimit:
		r.kind, r.limit = replyLimit, limitOutput
	default:
		r.kind, r.value = replyValue, out
	}
}

// invoke has the interpreter answer p.payload. What it returns is in the guest's memory and holds until the next reset.
func (p *python) invoke(ctx context.Context, r *reply) (kind byte, out []byte, ok bool) {
	p.stdin, p.ends = p.payload, 0
	p.stack.Set(uint64(p.image.stack))
	results, err := p.call.Call(ctx, uint64(p.image.function), 0, 0, 0)
	if err != nil {
		p.trapped(r, err)
		return 0, nil, false
	}
	out, ok = p.bytesObject(uint32(results[0]))
	if !ok || len(out) == 0 {
		r.kind, r.message = replyError, damaged
		return 0, nil, false
	}
	return out[0], out[1:], true
}

const damaged = "the code has damaged its own interpreter"

// refuse fills in a reply from the interpreter's report of an exception: type, message, line and traceback.
func (r *reply) refuse(kind byte, out []byte) {
	switch kind {
	case 'M':
		r.kind, r.limit = replyLimit, limitMemory
		return
	case 'J':
		r.kind = replyInvalid
	default:
		r.kind = replyError
	}
	report := []any{&r.errorType, &r.message, &r.line, &r.traceback}
	if err := json.Unmarshal(out, &report); err != nil {
		r.kind, r.message = replyError, damaged
	}
}

// trapped words an end that Python itself could not report.
func (p *python) trapped(r *reply, err error) {
	var exit *sys.ExitError
	switch {
	case errors.As(err, &exit):
		r.kind, r.errorType = replyError, "SystemExit"
		r.message = fmt.Sprintf("the code ended the interpreter with status %d; return a value instead", exit.ExitCode())
	default:
		// A trap: the C stack ran over, or an allocation that CPython does not check came back empty.
		r.kind, r.limit, r.traceback = replyLimit, limitStack, err.Error()
	}
}

// bytesObject reads a Python bytes object: reference count, type, length, hash, then the bytes.
func (p *python) bytesObject(at uint32) ([]byte, bool) {
	size, ok := p.module.Memory().ReadUint32Le(at + 8)
	if !ok || at == 0 {
		return nil, false
	}
	return p.module.Memory().Read(at+16, size)
}

func (p *python) walltime() (int64, int32) {
	if p.starting && len(p.stdout.bytes()) > 0 {
		panic(errReady)
	}
	p.asked = true
	now := p.clock.now()
	return now.Unix(), int32(now.Nanosecond())
}

// guestInput hands the request to the guest, piece by piece, and then the end of the file.
type guestInput struct{ p *python }

func (in guestInput) Read(b []byte) (int, error) {
	n := copy(b, in.p.stdin)
	in.p.stdin = in.p.stdin[n:]
	if n == 0 && len(b) > 0 {
		in.p.ends++
		return 0, io.EOF
	}
	return n, nil
}

// guestOutput takes what the guest prints.
type guestOutput struct {
	p  *python
	to *clipped
}

func (out guestOutput) Write(b []byte) (int, error) {
	out.p.asked = true
	return out.to.Write(b)
}

// guestBytes gives the guest its randomness.
type guestBytes struct{ p *python }

func (in guestBytes) Read(b []byte) (int, error) {
	in.p.asked = true
	return in.p.random.Read(b)
}
