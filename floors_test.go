// Package tandem_test keeps the shape of the module: which package may import which, and what pure packages may not do.
// The table below is the architecture; the rules are in floors_rules_test.go and are themselves tested in
// floors_cases_test.go, so that a rule that no longer sees anything cannot pass unnoticed.
package tandem_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "tandem"

// floor is one line of the architecture. A package imports only from strictly lower floors.
type floor struct {
	level int
	// pure packages decide; they touch neither the world nor the clock.
	pure bool
	// suite packages are conformance suites: only tests may import them.
	suite bool
}

// floors is the whole architecture. A name that ends in /* stands for every direct subpackage. Lines may stand here
// before their package exists; a package may not exist before its line stands here.
func floors() map[string]floor {
	return map[string]floor{
		"fault":   {level: 0, pure: true},
		"payload": {level: 0, pure: true},
		"text":    {level: 0, pure: true},
		"web":     {level: 0},

		"hypertext":   {level: 1, pure: true}, // below all that is given pages and mails
		"human/prose": {level: 0, pure: true}, // words alone

		"examples": {level: 0}, // embedded data

		"expr":               {level: 1, pure: true},
		"workflow/mermaid":   {level: 3, pure: true},
		"workflow/dominance": {level: 1, pure: true}, // graphs alone, below the graphs of workflows
		"shortage":           {level: 1},             // below all that opens files, connects or starts processes

		"workflow": {level: 2, pure: true},
		"dataflow": {level: 2, pure: true},

		"dataflow/editing": {level: 3, pure: true}, // above the layers, below the hosts that fork
		"engine":           {level: 3, pure: true},
		"outbound":         {level: 3}, // below all that calls services
		"identity":         {level: 2}, // below the stores: every call of theirs takes its Principal
		"credential":       {level: 3}, // below kinds and channels, which open credentials

		"credential/oauth": {level: 4},
		"mailbox":          {level: 4}, // below the extensions that bring and read mailboxes

		"mailbox/mailboxtest":                 {level: 5, suite: true},
		"integration/google/googletest":       {level: 6, suite: true},
		"integration/microsoft/microsofttest": {level: 6, suite: true},

		"node":         {level: 4},
		"node/handed":  {level: 2}, // which fields of a payload a function reads and hands on
		"node/shape":   {level: 3}, // what structs of configurations say, below the kinds that have them
		"node/printed": {level: 1}, // what a run says while it goes on
		"node/rundata": {level: 3}, // what a run reads, below the runs
		"node/slot":    {level: 3}, // what a schema wants and data lacks
		"llm":          {level: 4},
		"store":        {level: 4},
		"host":         {level: 4},
		"api":          {level: 4},
		"files":        {level: 4},

		// The rooms of the store in SQLite are below what it stores.
		"store/sqlite/migrations":      {level: 0}, // embedded data
		"store/relational":             {level: 3}, // the seam alone
		"store/relational/blobnames":   {level: 1},
		"store/sqlite/sqlconn":         {level: 4},
		"store/sqlite/datadir":         {level: 5},
		"store/sqlite/blobdir":         {level: 5},
		"store/relational/accounts":    {level: 5},
		"store/relational/auditlog":    {level: 5},
		"store/relational/inbox":       {level: 5},
		"store/relational/logs":        {level: 5},
		"store/relational/questions":   {level: 5},
		"store/relational/spending":    {level: 5},
		"store/relational/definitions": {level: 5},
		"store/relational/memories":    {level: 5},
		"store/relational/toolservers": {level: 5},
		"store/relational/triggers":    {level: 5},
		"store/sqlite/pages":           {level: 5},
		"store/relational/upkeep":      {level: 5},
		"store/relational/overview":    {level: 5},
		"store/relational/summaries":   {level: 5},

		"agent":           {level: 5, pure: true},
		"human/form":      {level: 3, pure: true}, // below the questions that it is the form of
		"human/listening": {level: 1},             // when accounts are listened to
		"human/watching":  {level: 0},             // who is told, of whatever it is
		"human/lineage":   {level: 5},             // why a question is asked, below all that shows it
		"human/sheet":     {level: 5},             // forms as pages, below all that serve pages
		"human/replies":   {level: 4},             // what a reply means, below those who take it
		"trigger":         {level: 5},
		"memory":          {level: 5},
		"mcp":             {level: 5},
		"sandbox":         {level: 5},
		"database":        {level: 5},
		"objectstore":     {level: 5},
		"store/sqlite":    {level: 6},
		"store/postgres":  {level: 6},
		"host/turns":      {level: 5}, // below the hosts
		"host/register":   {level: 5}, // below the hosts
		"host/lines":      {level: 5}, // below the hosts
		"host/sweep":      {level: 5}, // below the hosts
		"host/local":      {level: 6},
		"host/temporal":   {level: 7}, // above the local host, which it records with
		"cluster":         {level: 5}, // below the wiring of an instance
		"client":          {level: 5},
		"route":           {level: 5}, // below all that answers requests
		"limits":          {level: 5}, // below all that starts something

		"store/storetest": {level: 5, suite: true},
		"host/history":    {level: 5},
		"host/hosttest":   {level: 5, suite: true},
		"llm/llmtest":     {level: 5, suite: true},
		"storetest":       {level: 5, suite: true},
		"hosttest":        {level: 5, suite: true},
		"nodetest":        {level: 5, suite: true},
		"llmtest":         {level: 5, suite: true},

		"objectstore/objectstoretest": {level: 6, suite: true}, // above the seam that it is for
		"store/sqlite/sqlitetest":     {level: 7, suite: true}, // above the store that it opens
		"store/postgres/postgrestest": {level: 5, suite: true},
		"loopback":                    {level: 5, suite: true},

		"trigger/triggertest": {level: 6, suite: true}, // a service in memory for tests of sources

		"human/form/formtest": {level: 6, suite: true}, // what every medium must draw
		"human/channeltest":   {level: 7, suite: true}, // what stand-ins for chat services share

		"node/nodetest": {level: 6, suite: true}, // above the sandbox that runs the code of nodes

		"human": {level: 6},
		"plug":  {level: 7}, // what a package may bring, and what it may use for that

		"reference": {level: 6}, // what people read about kinds
		"login":     {level: 7}, // beside the settings: sessions, invitations, providers of identities

		"revisions": {level: 6}, // above the host whose revisions it makes ready

		"validation": {level: 6}, // of definitions, with all that their parts need
		"tracing":    {level: 6},
		"metrics":    {level: 6}, // above the router, whose requests it counts
		"doctor":     {level: 7}, // above the store that it looks after

		"backup":              {level: 8}, // above the stores that it saves
		"backup/archive":      {level: 1}, // the file alone, below the stores
		"store/sqlite/dump":   {level: 6},
		"store/postgres/dump": {level: 7}, // above the other, which it takes rows of

		// What the families of kinds share is below them.
		"builtin/document": {level: 5},
		"builtin/fileref":  {level: 5},
		"builtin/values":   {level: 5},
		"builtin/early":    {level: 5},
		"builtin/rest":     {level: 6},
		"builtin/httpcall": {level: 6},
		"builtin/lists":    {level: 6},
		"builtin/models":   {level: 6},
		"builtin/toolset":  {level: 6},
		"builtin/notice":   {level: 6}, // below the extensions of vendors, which bring ways to deliver notices
		"builtin/turn":     {level: 6}, // below the extensions of providers, which bring kinds with turns

		"builtin/*":     {level: 7}, // one family of kinds each
		"integration/*": {level: 8}, // one vendor each
		"llm/*":         {level: 8}, // one way to reach models each

		"builtin/ask/asktest":       {level: 8, suite: true}, // what tests of kinds that ask share
		"builtin/action/actiontest": {level: 8, suite: true}, // what every kind must do that acts in a service
		"builtin/models/modelstest": {level: 9, suite: true}, // above the model that tests script

		"needs":    {level: 7}, // of definitions, above what can be asked for them
		"gateway":  {level: 7},
		"fixture":  {level: 7}, // drives folds and revisions as a host does, without a store
		"story":    {level: 7},
		"trial":    {level: 5}, // what tests of definitions are asked for and compared with
		"respond":  {level: 7},
		"visitors": {level: 7},
		"settings": {level: 7},
		"budget":   {level: 7},

		"story/storytest": {level: 7, suite: true},

		"importer":   {level: 5}, // what was made elsewhere, above the shapes of the API that it reports in
		"importer/*": {level: 6}, // one system each, and the route by which files come in

		"importer/importertest": {level: 6, suite: true}, // what every reader must do

		"templates": {level: 6}, // embedded workflows, above the shapes of the API that lists them

		"server":  {level: 8},
		"standby": {level: 7},
		"live":    {level: 5}, // between the hubs of processes
		"vault":   {level: 8}, // above the settings, whose routes people come back by

		"app": {level: 9},

		"console/table": {level: 6}, // how values are shown
		"console/tree":  {level: 7}, // an execution while it runs
		"console":       {level: 10},
		"benchmark":     {level: 10},

		"console/tree/treetest": {level: 7, suite: true}, // a terminal that tells what it shows

		"cmd/tandem":        {level: 11},
		"cmd/import-report": {level: 11},
	}
}

// floorOf looks a package up, without the module's name.
func floorOf(table map[string]floor, pkg string) (floor, bool) {
	if f, ok := table[pkg]; ok {
		return f, true
	}
	f, ok := table[path.Dir(pkg)+"/*"]
	return f, ok
}

func TestFloors(t *testing.T) {
	t.Parallel()
	table := floors()
	dirs := packageDirs(t, ".")
	for _, want := range []string{"app", "cmd/tandem", "dataflow", "engine", "expr", "fault", "workflow"} {
		if !slices.Contains(dirs, want) {
			t.Errorf("the walk did not find package %q, so this test would check too little; found %q", want, dirs)
		}
	}
	for _, dir := range dirs {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			fset := token.NewFileSet()
			files := parseDir(t, fset, dir)
			report := func(pos token.Pos, rule, text string) {
				t.Errorf("%s: %s: %s", fset.Position(pos), rule, text)
			}
			if dir == "." {
				for _, f := range files {
					if !f.test {
						report(f.ast.Package, "unknown_package", "the module's root holds tests only")
					}
				}
				return
			}
			checkPackageName(dir, files, report)
			f, known := floorOf(table, dir)
			if !known {
				t.Errorf("%s: package directory %q has no floor; give it a line in floors()", dir, dir)
				return
			}
			for _, file := range files {
				checkImports(table, dir, file, report)
			}
			checkGlobals(files, report)
			if f.pure {
				checkPure(fset, module+"/"+dir, buildable(t, dir, files), exports(t), report)
			}
		})
	}
}

// source is one parsed file.
type source struct {
	name string
	test bool
	ast  *ast.File
}

// packageDirs lists the directories under root that hold Go files and belong to this module, slash-separated.
func packageDirs(t *testing.T, root string) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if !entry.IsDir() {
			if dir := filepath.ToSlash(filepath.Dir(name)); strings.HasSuffix(base, ".go") && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
			return nil
		}
		if name == root {
			return nil
		}
		if base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
			return fs.SkipDir // another module
		}
		return nil
	})
	if err != nil {
		t.Fatalf("walk the module: %v", err)
	}
	return dirs
}

func parseDir(t *testing.T, fset *token.FileSet, dir string) []source {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatalf("read package directory: %v", err)
	}
	var files []source
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(dir, entry.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("parse: %v", err)
		}
		files = append(files, source{name: entry.Name(), test: strings.HasSuffix(entry.Name(), "_test.go"), ast: f})
	}
	return files
}

// buildable drops the files that build constraints exclude here, since they cannot be type-checked with the others.
func buildable(t *testing.T, dir string, files []source) []source {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(files), func(f source) bool {
		ok, err := build.Default.MatchFile(dir, f.name)
		if err != nil {
			t.Fatalf("read build constraints: %v", err)
		}
		return !ok
	})
}
