package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestInCommands(t *testing.T) {
	t.Parallel()
	cmd := &cobra.Command{Use: "start"}
	cmd.Flags().Bool("force", false, "")
	cmd.Flags().String("page-size", "", "")
	cmd.Flags().StringArray("input", nil, "")
	bare := &cobra.Command{Use: "bare"}
	for _, c := range []struct {
		cmd        *cobra.Command
		text, want string
	}{
		{cmd, "query.page_size: it is too large", "--page-size: it is too large"},
		{cmd, "body.page_size and query.other", "--page-size and query.other"},
		{bare, "query.page_size: it is too large", "query.page_size: it is too large"},
		{cmd, "delete it with force=true", "delete it with --force"},
		{cmd, "input=true is not a switch", "input=true is not a switch"},
		{bare, "delete it with force=true", "delete it with force=true"},
		{cmd, "there is none; GET /api/v1/node-kinds lists them", `there is none; "tandem nodes" lists them`},
		{cmd, "(POST /api/v1/credentials).", `("tandem credentials set").`},
		{cmd, "GET /api/v1/unheard-of", "GET /api/v1/unheard-of"},
		{cmd, "inputs: missing property 'amount'", "inputs: missing property 'amount'; give --input amount=…"},
		{cmd, "inputs: missing properties 'a b', 'c'", "inputs: missing properties 'a b', 'c'; give --input 'a b=…' --input c=…"},
		{bare, "inputs: missing property 'amount'", "inputs: missing property 'amount'"},
	} {
		if got := inCommands(c.cmd, c.text); got != c.want {
			t.Errorf("%q is told as %q, want %q", c.text, got, c.want)
		}
	}
}

// Every request that an error of the API names has a command, so that nobody at a terminal is told to make a request.
func TestCommandOf_KnowsWhatErrorsName(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`(GET|POST|PUT|PATCH|DELETE) (?:"\+(?:[a-z]+\.)?[pP]refix\+"|%s|/api/v1)(/[a-z0-9/_{}-]*[a-z}])`)
	found := 0
	for _, dir := range []string{"server", "settings", "story", "route", "respond", "revisions", "budget", "validation", "app", "human", "host", "workflow", "agent", "mcp", "credential"} {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, "Description") || strings.Contains(line, `doc:"`) || strings.Contains(line, "HandleFunc") || strings.HasPrefix(strings.TrimSpace(line), "//") {
					continue // of the API itself
				}
				for _, request := range named.FindAllStringSubmatch(line, -1) {
					found++
					if _, ok := commandOf(request[1] + " /api/v1" + request[2]); !ok {
						t.Errorf("%s names %s %s, and commandOf does not know it: %s", file, request[1], request[2], strings.TrimSpace(line))
					}
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d requests were found", found)
	}
}
