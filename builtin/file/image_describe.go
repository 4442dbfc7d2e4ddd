package file

import (
	"context"
	"net/http"

	"tandem/builtin/models"
	"tandem/fault"
	"tandem/llm"
)

type imageDescribeArgs struct {
	imageArg
	Question string `json:"question"`
}

func (a *imageDescribeArgs) Defaults() { a.Question = "What does this picture show?" }

// describe asks a model that can see. It is shown the picture as it is in the file.
func (x *imageTools) describe(ctx context.Context, a imageDescribeArgs) (any, error) {
	p, err := x.open(ctx, a.File)
	if err != nil {
		return nil, err
	}
	if len(p.data) > models.MaxImageBytes {
		return nil, fault.Newf(fault.TooLarge, "%q has %d bytes, and a model is shown at most %d; make it smaller with image_resize", p.name, len(p.data), models.MaxImageBytes).With("limit", models.MaxImageBytes)
	}
	out, err := x.models.Ask(ctx, x.call, x.cfg.VisionProfile, llm.Request{Messages: []llm.Message{
		{Role: llm.User, Content: a.Question, Images: []llm.Image{{MediaType: http.DetectContentType(p.data), Data: p.data}}},
	}})
	if err != nil {
		return nil, err
	}
	return map[string]any{"description": out.Message.Content}, nil
}
