package tandem_test

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// vendorCases are what every kind is tested with that acts in a service. The suite builtin/action/actiontest has all of them, and fails when a vendor leaves one out
// that applies to it. read-only
var vendorCases = []string{"success", "validation", "auth", "refresh", "limit", "pages", "recovery", "timeout", "other body", "lost"}

// ownCases are the kinds that do not speak HTTP or do not have operations, so that the suite does not fit: which test of theirs has each case, in the package of the kind
// or in app, or why there is none ("none: …"). "as KIND": they share its client. read-only
var ownCases = map[string]map[string]string{
	"EXTERNAL_ACTION.EMAIL": {
		"success": "TestAction_Send", "validation": "TestAction_Refusals", "auth": "TestAction_Refusals", "refresh": "TestAction_Renews",
		"limit": "TestAction_Refusals", // SMTP has no Retry-After: 451 is tried again
		"pages": "TestAction_SearchPages", "recovery": "TestAction_BrokenServers", "timeout": "TestAction_BrokenServers", "other body": "TestAction_BrokenServers", "lost": "TestAction_Inquire",
	},
	"TOOL.EMAIL_TOOL": {
		"success": "TestEmailTool", "validation": "TestEmailTool_Refusals", "auth": "as EXTERNAL_ACTION.EMAIL", "refresh": "as EXTERNAL_ACTION.EMAIL", "limit": "as EXTERNAL_ACTION.EMAIL",
		"pages": "as EXTERNAL_ACTION.EMAIL", "recovery": "as EXTERNAL_ACTION.EMAIL", "timeout": "as EXTERNAL_ACTION.EMAIL", "other body": "as EXTERNAL_ACTION.EMAIL", "lost": "TestEmailTool_Inquire",
	},
	"EXTERNAL_ACTION.WEBHOOK": {
		"success": "TestSend_Deliveries", "validation": "TestSend_Refusals", "auth": "TestSend_Refusals", "refresh": "none: a secret does not expire", "limit": "TestSend_Refusals",
		"pages": "none: it reads no lists", "recovery": "TestSend_SameID", "timeout": "TestSend_Timeout", "other body": "TestSend_LongAnswer", "lost": "TestSend_SameID",
	},
	"EXTERNAL_ACTION.API_CALL": {
		"success": "TestAPICall", "validation": "TestAPICall_Refusals", "auth": "TestAPICall_Credentials", "refresh": "TestAPICall_ExpiredToken", "limit": "TestAPICall_Failures",
		"pages": "none: how a service pages is not part of its definition", "recovery": "TestAPICall_Failures", "timeout": "TestAPICall_Failures", "other body": "TestAPICall_OtherBody", "lost": "TestAPICall_Failures",
	},
	"EXTERNAL_ACTION.NOTIFICATION": {
		"success": "app.TestNotification", "validation": "app.TestNotification_Failures", "auth": "as EXTERNAL_ACTION.SLACK", "refresh": "as EXTERNAL_ACTION.EMAIL", "limit": "as EXTERNAL_ACTION.SLACK",
		"pages": "none: it reads no lists", "recovery": "as EXTERNAL_ACTION.SLACK", "timeout": "as EXTERNAL_ACTION.SLACK", "other body": "as EXTERNAL_ACTION.SLACK", "lost": "app.TestNotification_LostMail",
	},
}

// vendorKind is a kind that acts in a service, and the function that makes it.
type vendorKind struct{ name, dir, maker string }

// TestVendorCases: every kind of the type EXTERNAL_ACTION, and every kind of a vendor's package that is a tool, runs the suite of failures, or has a test of its own for
// each of its cases.
func TestVendorCases(t *testing.T) {
	t.Parallel()
	var kinds []vendorKind
	tests, run := map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, dir := range append(packageDirs(t, "integration"), append(packageDirs(t, "builtin"), "app")...) {
		tests[dir] = map[string]bool{}
		var makers []vendorKind
		var testFuncs []*ast.FuncDecl
		for _, f := range parseDir(t, token.NewFileSet(), dir) {
			for _, d := range f.ast.Decls {
				fn, ok := d.(*ast.FuncDecl)
				switch {
				case !ok:
				case f.test:
					testFuncs = append(testFuncs, fn)
					tests[dir][fn.Name.Name] = true
				default:
					makers = append(makers, kindsMade(fn, dir)...)
				}
			}
		}
		kinds = append(kinds, makers...)
		run[dir] = suiteRuns(testFuncs)
	}
	found := map[string]bool{}
	for _, k := range kinds {
		found[k.name] = true
		if run[k.dir][k.maker] {
			if ownCases[k.name] != nil {
				t.Errorf("%s runs the suite; remove it from ownCases", k.name)
			}
			continue
		}
		for _, name := range vendorCases {
			said := ownCases[k.name][name]
			test, inApp := strings.CutPrefix(said, "app.")
			switch {
			case strings.HasPrefix(said, "none: "), strings.HasPrefix(said, "as ") && slices.ContainsFunc(kinds, func(o vendorKind) bool { return "as "+o.name == said }):
			case inApp && tests["app"][test], tests[k.dir][test]:
			default:
				t.Errorf("%s is not tested with %q (%q): run the suite of builtin/action/actiontest, or name the test in ownCases", k.name, name, said)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ownCases)) {
		if !found[name] {
			t.Errorf("there is no kind %s", name)
		}
	}
	if len(kinds) < 24 {
		t.Errorf("only %d kinds were found", len(kinds))
	}
}

// kindsMade are the kinds that a function makes by an About with their names.
func kindsMade(fn *ast.FuncDecl, dir string) (list []vendorKind) {
	ast.Inspect(fn, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, _ := pair.Key.(*ast.Ident)
		lit, _ := pair.Value.(*ast.BasicLit)
		if key == nil || lit == nil || key.Name != "Name" {
			return true
		}
		name := strings.Trim(lit.Value, "\"`")
		if strings.HasPrefix(name, "EXTERNAL_ACTION.") || strings.HasPrefix(name, "TOOL.") && strings.HasPrefix(dir, "integration/") {
			list = append(list, vendorKind{name, dir, fn.Name.Name})
		}
		return true
	})
	return list
}

// suiteRuns are the functions that make the kinds for which the suite is run: those that stand at Kind of a Vendor in a function whose result somebody runs the suite of.
func suiteRuns(funcs []*ast.FuncDecl) map[string]bool {
	ran := map[string]bool{} // the functions that are named where the suite is run
	for _, fn := range funcs {
		names, runs := names(fn)
		if runs {
			for name := range names {
				ran[name] = true
			}
		}
	}
	makers := map[string]bool{}
	for _, fn := range funcs {
		if !ran[fn.Name.Name] {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			pair, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			if key, _ := pair.Key.(*ast.Ident); key != nil && key.Name == "Kind" {
				used, _ := names(pair.Value)
				maps.Copy(makers, used)
			}
			return true
		})
	}
	return makers
}

// names are the identifiers in a piece of code, and whether it runs the suite.
func names(n ast.Node) (used map[string]bool, runs bool) {
	used = map[string]bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			used[n.Name] = true
		case *ast.SelectorExpr:
			runs = runs || n.Sel.Name == "Failures" || n.Sel.Name == "ToolFailures"
		}
		return true
	})
	return used, runs
}
