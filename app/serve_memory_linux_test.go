package app

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// residentFile is how much of files, the binary first of all, is mapped into this process, in kB.
func residentFile(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("the kernel does not tell: %s", status)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What was touched while starting is given back, and the program runs on. It is looked at in a process of its own: others
// would touch the pages again meanwhile.
func TestForgetBinary(t *testing.T) {
	t.Parallel()
	const inside = "TANDEM_TEST_FORGET"
	if os.Getenv(inside) == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestForgetBinary$")
		cmd.Env = append(os.Environ(), inside+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	before := residentFile(t)
	if err := forgetBinary(); err != nil {
		t.Fatal(err)
	}
	if after := residentFile(t); after > before/2 {
		t.Errorf("%d kB of files are mapped, %d before", after, before)
	}
}
