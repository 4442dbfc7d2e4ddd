package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"tandem/api"
	"tandem/fault"
	"tandem/identity"
	"tandem/route"
	"tandem/text"
)

func evaluateOperation() huma.Operation {
	return route.ChangesNothing(huma.Operation{
		Method: http.MethodPost, Path: "/workflows/evaluate", OperationID: "evaluate-expression", Summary: "Say what an expression or a text with placeholders is worth", Tags: []string{"workflows"},
		Description: "For who writes it: with the data of an execution, as one of its nodes reads it, or with data that is given. Nothing runs and nothing is kept. It has the limits of time, steps and size that it has in a node. " +
			"What is wrong with it is told as error in the answer, with its place.",
	})
}

type evaluateInput struct {
	Body api.EvaluateRequest
}

type evaluateOutput struct{ Body api.EvaluateResponse }

func (s *Server) evaluate(ctx context.Context, p identity.Principal, in *evaluateInput) (*evaluateOutput, error) {
	out, err := s.stories.Evaluate(ctx, p, &in.Body, func(f *fault.Error) string {
		return text.ErrorIn(route.LanguageOf(ctx), f)
	})
	return &evaluateOutput{out}, err
}
