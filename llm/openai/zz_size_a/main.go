package main

import (
	"fmt"
	"net/http"

	"tandem/llm"
	"tandem/outbound"
)

func main() {
	c := llm.HangUp(&http.Client{Transport: outbound.New(outbound.Options{}).RoundTripper(0)})
	fmt.Println(c.Get("x"))
}
