package client_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"tandem/client"
)

// Calls a server at its address with a token. Here the server is one of the example; yours is the one that "tandem serve" prints.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer tdm_of_yours" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"workflows": [{"id": "invoice", "name": "Invoices"}]}`)
		}
	}))
	defer server.Close()
	tandem, err := client.New(client.Options{URL: server.URL, Token: "tdm_of_yours"})
	if err != nil {
		log.Fatal(err)
	}
	list, err := tandem.Workflows(context.Background(), client.WorkflowQuery{})
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range list.Workflows {
		fmt.Println(w.ID, w.Name)
	}
	// Output: invoice Invoices
}
