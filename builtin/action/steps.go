package action

import (
	"context"

	"tandem/node"
)

// Steps is how the operations of a kind run that begin and end alike. C is the configuration, A what an operation works with, O its result.
type Steps[C, A, O any] struct {
	// Begin opens the service.
	Begin func(ctx context.Context, call *node.Call, cfg C) (A, error)
	// End says of a result what was done.
	End func(out *O, cfg C)
}

// Does makes an operation of one step between the beginning and the end.
func (s Steps[C, A, O]) Does(do func(A) (O, error)) func(context.Context, *node.Call, C) (O, error) {
	return func(ctx context.Context, call *node.Call, cfg C) (out O, err error) {
		a, err := s.Begin(ctx, call, cfg)
		if err != nil {
			return out, err
		}
		if out, err = do(a); err == nil {
			s.End(&out, cfg)
		}
		return out, err
	}
}

// Asks makes of one step how the service is asked what became of a call.
func (s Steps[C, A, O]) Asks(look func(A) (O, bool, error)) func(context.Context, *node.Call, C) (O, bool, error) {
	return func(ctx context.Context, call *node.Call, cfg C) (out O, found bool, err error) {
		a, err := s.Begin(ctx, call, cfg)
		if err != nil {
			return out, false, err
		}
		if out, found, err = look(a); err == nil && found {
			s.End(&out, cfg)
		}
		return out, found, err
	}
}
