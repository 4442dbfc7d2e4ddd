// Command import-report tries the importers on a directory of files of other systems: how many can be imported, validate, and run to their
// end against fakes on this machine, and what became of their nodes. It is for who works on the importers; "make import-report DIR=…" calls
// it.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"tandem/app"
	"tandem/importer"
	"tandem/sandbox"
	"tandem/text"
)

func main() {
	if sandbox.IsChild() { // this process is to run code, and nothing else
		sandbox.Child()
	}
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: import-report DIR...")
		os.Exit(2)
	}
	if err := report(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "import-report:", err)
		os.Exit(1)
	}
}

// counts are how nodes fared.
type counts struct{ kept, approximated, missing int }

func (c counts) all() int { return c.kept + c.approximated + c.missing }

// tally is what is counted over the files.
type tally struct {
	files, imported, valid, whole, ran int
	nodes                              counts
	types                              map[string]*counts
	// told are lines about files with which something is wrong.
	told []string
}

// report tries every file below the directories.
func report(ctx context.Context, out io.Writer, dirs []string) error {
	files, err := filesBelow(dirs)
	if err != nil {
		return err
	}
	im := app.NewImporter()
	defer im.Close()
	world, err := openWorld(ctx)
	if err != nil {
		return err
	}
	defer world.close()
	t := &tally{types: map[string]*counts{}}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read a file: %w", err)
		}
		t.try(ctx, im, world, filepath.Base(file), content)
	}
	t.print(out)
	return nil
}

// filesBelow are the files of other systems below directories, in order.
func filesBelow(dirs []string) (files []string, err error) {
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && slices.Contains([]string{".json", ".yml", ".yaml"}, filepath.Ext(name)) {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("look for files: %w", err)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no JSON or YAML file below %s", strings.Join(dirs, ", "))
	}
	return files, nil
}

// try imports and runs one file.
func (t *tally) try(ctx context.Context, im *app.Importer, world *world, name string, content []byte) {
	t.files++
	imported, err := im.Import(name, content, text.English)
	if err != nil {
		t.told = append(t.told, fmt.Sprintf("%s: %v", name, err))
		return
	}
	t.imported++
	valid, whole, ran := true, true, true
	for i := range imported.Workflows {
		w := &imported.Workflows[i]
		t.count(w)
		whole = whole && w.Report.Missing == 0
		if !w.Report.Valid {
			valid, ran = false, false
			for _, p := range w.Report.Problems {
				if p.Severity == "error" {
					t.told = append(t.told, fmt.Sprintf("%s: not valid: %s: %s", name, p.Path, p.Message))
				}
			}
			continue
		}
		if why := world.run(ctx, w); why != "" {
			ran = false
			t.told = append(t.told, fmt.Sprintf("%s: not run to its end: %s", name, why))
		}
	}
	for _, one := range []struct {
		is bool
		n  *int
	}{{valid, &t.valid}, {whole, &t.whole}, {ran, &t.ran}} {
		if one.is {
			*one.n++
		}
	}
}

// count counts the nodes of a workflow.
func (t *tally) count(w *importer.Workflow) {
	for _, n := range w.Report.Nodes {
		c := t.types[n.Type]
		if c == nil {
			c = &counts{}
			t.types[n.Type] = c
		}
		for _, c := range []*counts{c, &t.nodes} {
			switch n.Fidelity {
			case "kept":
				c.kept++
			case "approximated":
				c.approximated++
			default:
				c.missing++
			}
		}
	}
}

// print writes the tables.
func (t *tally) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "files\t%d\t\n", t.files)
	for _, line := range []struct {
		name string
		n    int
	}{{"imported", t.imported}, {"valid", t.valid}, {"without a missing node", t.whole}, {"run to their end", t.ran}} {
		fmt.Fprintf(w, "%s\t%d\t%s\n", line.name, line.n, percent(line.n, t.files))
	}
	fmt.Fprintf(w, "nodes\t%d\t\n", t.nodes.all())
	fmt.Fprintf(w, "kept\t%d\t%s\n", t.nodes.kept, percent(t.nodes.kept, t.nodes.all()))
	fmt.Fprintf(w, "approximated\t%d\t%s\n", t.nodes.approximated, percent(t.nodes.approximated, t.nodes.all()))
	fmt.Fprintf(w, "missing\t%d\t%s\n", t.nodes.missing, percent(t.nodes.missing, t.nodes.all()))
	fmt.Fprint(w, "\ntype\tkept\tapproximated\tmissing\n")
	names := make([]string, 0, len(t.types))
	for name := range t.types { // sorted below
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(t.types[b].all()-t.types[a].all(), strings.Compare(a, b)) })
	for _, name := range names {
		c := t.types[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", name, c.kept, c.approximated, c.missing)
	}
	if err := w.Flush(); err != nil {
		return // the reader has gone
	}
	for _, line := range t.told {
		fmt.Fprintln(out, line)
	}
}

func percent(n, of int) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}
