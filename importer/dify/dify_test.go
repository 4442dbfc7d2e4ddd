package dify_test

import (
	"testing"

	"tandem/importer/dify"
	"tandem/importer/importertest"
)

func TestSystem(t *testing.T) {
	t.Parallel()
	importertest.Conform(t, dify.System{}, "testdata/*")
}

func TestSystem_Hostile(t *testing.T) {
	t.Parallel()
	importertest.Hostile(t, dify.System{}, "testdata/*")
}

func FuzzImport(f *testing.F) { importertest.Fuzz(f, dify.System{}, "testdata/*") }
