package main

import (
	"context"
	"fmt"
	"net/http"

	"tandem/llm"
	"tandem/llm/openai"
	"tandem/outbound"
)

func main() {
	c := llm.HangUp(&http.Client{Transport: outbound.New(outbound.Options{}).RoundTripper(0)})
	fmt.Println(c.Get("x"))
	p, err := openai.New(llm.Settings{HTTP: c})
	fmt.Println(p.Complete(context.Background(), llm.Request{}, nil))
	fmt.Println(p.(llm.Embedder).Embed(context.Background(), "", nil))
	fmt.Println(err)
}
