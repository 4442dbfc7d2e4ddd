package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"tandem/fault"
	"tandem/shortage"
)

// childArg is the first argument of a re-executed binary that is to be a child: childArg=language=cache directory.
const childArg = "tandem-sandbox-child="

// mustAsk is what a program has to do that runs code. It is told by a child that did not, and by the parent of such a child.
const mustAsk = "main must begin by asking sandbox.IsChild"

// leashFD is the first file after the three standard ones.
const leashFD = 3

// interpreter runs calls, one at a time. While it does, it tells what the code prints, so that this is known even if the code
// never ends. reset puts it back to its first state and is called after every run, when the reply is already on its way.
type interpreter interface {
	run(ctx context.Context, q *request, printed printing) *reply
	reset(ctx context.Context) error
}

// printing is where what code prints goes while it runs.
type printing struct{ stdout, stderr func(text []byte) }

// IsChild says whether this process was started to be a child of a [Pool]. Nothing else may happen before it is asked.
func IsChild() bool { return len(os.Args) == 2 && strings.HasPrefix(os.Args[1], childArg) }

// Child answers calls on standard input until that ends, and exits. It never returns.
func Child() {
	if err := serveChild(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serveChild loads the interpreter, raises the walls, and only then looks at the first call.
func serveChild(ctx context.Context, in io.Reader, out io.Writer) error {
	language, dir, _ := strings.Cut(strings.TrimPrefix(os.Args[1], childArg), "=")
	// The leash: it ends when the parent does, whatever a call is doing then.
	leash := os.NewFile(leashFD, "leash")
	go func() {
		_, _ = leash.Read(make([]byte, 1))
		os.Exit(0)
	}()
	r := bufio.NewReaderSize(in, 64<<10)
	var vm interpreter
	var err error
	if language != probeMode {
		vm, err = newInterpreter(ctx, Language(language), dir)
	}
	if err == nil {
		err = raiseWalls()
	}
	greeting := &reply{kind: replyValue}
	if language == probeMode && err == nil {
		greeting.value, err = json.Marshal(probeWalls())
	}
	if err != nil {
		greeting = &reply{kind: replyBroken, message: err.Error()}
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			greeting.errorType, greeting.message = string(f.Code), f.Message
		} else if shortage.Is(err) {
			f = shortage.Or(err, fault.New(fault.Internal, "a process for the code did not get ready"))
			greeting.errorType, greeting.message = string(f.Code), f.Message
		}
	}
	buf := greeting.append(frame(nil))
	if err := writeFrame(out, buf); err != nil || greeting.kind == replyBroken {
		return err
	}
	// A parent that cannot be told has gone, and ends this process by the leash.
	var printed []byte
	tell := func(p *reply) {
		printed = p.append(frame(printed))
		_ = writeFrame(out, printed)
	}
	live := printing{
		stdout: func(text []byte) { tell(&reply{kind: replyPrinted, stdout: text}) },
		stderr: func(text []byte) { tell(&reply{kind: replyPrinted, stderr: text}) },
	}
	for {
		b, err := readFrame(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		q, err := parseRequest(b)
		if err != nil {
			return err
		}
		answer := vm.run(ctx, q, live)
		buf = answer.append(frame(buf))
		if err := writeFrame(out, buf); err != nil || answer.kind == replyBroken {
			return err
		}
		if err := vm.reset(ctx); err != nil {
			return err
		}
	}
}

func newInterpreter(ctx context.Context, language Language, dir string) (interpreter, error) {
	switch language {
	case JavaScript:
		return newJavaScript()
	case Jinja:
		return newJinja()
	}
	return newPython(ctx, dir)
}
