package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"unicode"

	"tandem/fault"
	"tandem/node/shape"
	"tandem/payload"
)

// Define makes a kind from a typed function. What the function returns is the payload of "result".
//
// C is a struct of the kind's own configuration fields, read as [Configuration] says. I is the part of the input that the function
// reads: json.RawMessage for all of it as it came, or a struct. Plan, if there is one, checks a configuration when a workflow is saved,
// beyond what the tags of C say, and decides what they cannot; see [Planning].
func Define[C, I, O any](about About, run func(ctx context.Context, call *Call, cfg C, in I) (O, error),
	plan ...func(p *Planning, cfg *C)) Kind {
	k := Raw(about, func(ctx context.Context, call *Call, cfg C, in I) (Outcome, error) {
		out, err := run(ctx, call, cfg, in)
		if err != nil {
			return nil, err
		}
		return Succeed(out)
	}, plan...)
	k.OutputSchema = SchemaOf[O](about.Name)
	k.About = k.About.described(nil, reflect.TypeFor[O]())
	return k
}

// Raw makes a kind from a function that chooses its output keys, or waits.
func Raw[C, I any](about About, run func(ctx context.Context, call *Call, cfg C, in I) (Outcome, error),
	plan ...func(p *Planning, cfg *C)) Kind {
	fields := shapeFor[C](about)
	return Kind{
		About:        about.described(reflect.TypeFor[I](), nil),
		ConfigSchema: shape.SchemaOfConfig[C](about.Name, fields),
		InputSchema:  SchemaOf[I](about.Name),
		config:       fields,
		plan:         planned(fields, plan),
		skims:        payload.ReadsOf(reflect.TypeFor[I]()),
		prompt:       fields.Prompts,
		promptInputs: shape.PromptInputs(reflect.TypeFor[I]()),
		Run: func(ctx context.Context, call *Call) (out Outcome, err error) {
			defer recovered(about.Name, &err)
			cfg, err := configuration[C](fields, call.Config)
			if err != nil {
				return nil, err
			}
			in, err := input[I](call.Input)
			if err != nil {
				return nil, err
			}
			return run(ctx, call, cfg, in)
		},
	}
}

// Body is a [Scope] with its configuration read. Turn may be nil when no opening has Turns.
type Body[C any] struct {
	Open      func(ctx context.Context, call *Call, cfg C) (Opening, error)
	Share     func(call *Call, cfg C) (path []string, err error) // may be nil
	Iteration func(call *Call, cfg C, state json.RawMessage, index int64) (Iteration, error)
	Turn      func(ctx context.Context, call *Call, cfg C, t Turn) (Advance, error)
	Close     func(ctx context.Context, call *Call, cfg C, t Closing) (Done, error)
}

// Loop makes a kind that runs a body.
func Loop[C any](about About, body Body[C], plan ...func(p *Planning, cfg *C)) Kind {
	fields := shapeFor[C](about)
	s := &Scope{
		Open: func(ctx context.Context, call *Call) (o Opening, err error) {
			defer recovered(about.Name, &err)
			cfg, err := configuration[C](fields, call.Config)
			if err != nil {
				return Opening{}, err
			}
			return body.Open(ctx, call, cfg)
		},
		Iteration: func(call *Call, state json.RawMessage, index int64) (it Iteration, err error) {
			defer recovered(about.Name, &err)
			cfg, err := configuration[C](fields, call.Config)
			if err != nil {
				return Iteration{}, err
			}
			return body.Iteration(call, cfg, state, index)
		},
		Close: func(ctx context.Context, call *Call, t Closing) (d Done, err error) {
			defer recovered(about.Name, &err)
			cfg, err := configuration[C](fields, call.Config)
			if err != nil {
				return nil, err
			}
			return body.Close(ctx, call, cfg, t)
		},
	}
	if body.Share != nil {
		s.Share = func(call *Call) (path []string, err error) {
			defer recovered(about.Name, &err)
			cfg, err := configuration[C](fields, call.Config)
			if err != nil {
				return nil, err
			}
			return body.Share(call, cfg)
		}
	}
	if body.Turn != nil {
		s.Turn = func(ctx context.Context, call *Call, t Turn) (a Advance, err error) {
			defer recovered(about.Name, &err)
			cfg, err := configuration[C](fields, call.Config)
			if err != nil {
				return Advance{}, err
			}
			return body.Turn(ctx, call, cfg, t)
		}
	}
	return Kind{About: about, Scope: s, ConfigSchema: shape.SchemaOfConfig[C](about.Name, fields),
		config: fields, plan: planned(fields, plan)}
}

// recovered turns a panic of a kind into an error of its node: a defect of one kind harms no other node.
func recovered(kind string, err *error) {
	if p := recover(); p != nil {
		*err = fault.Newf(fault.Internal, "%s stopped because of a defect; the operator's log has the detail", kind).
			WithDetail(fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
	}
}

// input reads the part of the input that a kind asks for. Fields it does not know are ignored.
func input[I any](raw json.RawMessage) (I, error) {
	var none I
	switch any(none).(type) {
	case json.RawMessage:
		if len(raw) == 0 {
			raw = json.RawMessage(`{}`)
		}
		as, _ := any(raw).(I) // which it is
		return as, nil
	case struct{}:
		return none, nil
	}
	if len(raw) == 0 {
		return none, nil
	}
	var in I
	err := payload.Read(raw, &in)
	if err == nil {
		return in, nil
	}
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		return in, refused // by a part that has its own reader
	}
	if wrong, ok := err.(*json.UnmarshalTypeError); ok {
		// It has the names of embedded structs, which are names of Go, beside those of JSON.
		name := strings.Join(slices.DeleteFunc(strings.Split(wrong.Field, "."),
			func(part string) bool { return part != "" && unicode.IsUpper(rune(part[0])) }), ".")
		if name == "" {
			name = "input"
		}
		return in, fault.Newf(fault.InvalidInput, "%q must be %s, not %s", name, shape.WordOf(wrong.Type), wrong.Value).With("path", name)
	}
	return in, fault.Newf(fault.InvalidInput, "the input cannot be read: %w", err)
}
