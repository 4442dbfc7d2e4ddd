package expr

import (
	"encoding/json"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

func cmpInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func cmpFloat(a, b float64) (int, bool) {
	switch {
	case a < b:
		return -1, true
	case a > b:
		return 1, true
	}
	return 0, a == b
}

// compareNumbers orders two numbers exactly, whatever form they have; false if one is NaN or beyond every float.
func compareNumbers(x, y any) (int, bool) {
	switch a := x.(type) {
	case int64:
		switch b := y.(type) {
		case int64:
			return cmpInt(a, b), true
		case float64:
			return cmpIntFloat(a, b)
		}
	case float64:
		switch b := y.(type) {
		case int64:
			cmp, ok := cmpIntFloat(b, a)
			return -cmp, ok
		case float64:
			return cmpFloat(a, b)
		}
	}
	return cmpHuge(x, y)
}

func cmpIntFloat(a int64, b float64) (int, bool) {
	switch {
	case math.IsNaN(b):
		return 0, false
	case b >= 1<<63:
		return -1, true
	case b < -1<<63:
		return 1, true
	}
	whole := math.Trunc(b)
	if cmp := cmpInt(a, int64(whole)); cmp != 0 {
		return cmp, true
	}
	return cmpFloat(whole, b)
}

// mostDigits is more than any whole float has, its sign included.
const mostDigits = 311

// cmpHuge compares when at least one side is a json.Number, that is beyond int64.
func cmpHuge(x, y any) (int, bool) {
	a, bigA := x.(json.Number)
	b, bigB := y.(json.Number)
	if bigA && bigB && a == b {
		return 0, true
	}
	if bigA && !wholeNumber(string(a)) || bigB && !wholeNumber(string(b)) {
		return 0, false
	}
	switch {
	case bigA && bigB:
		return cmpDigits(string(a), string(b)), true
	case bigB:
		cmp, ok := cmpHuge(y, x)
		return -cmp, ok
	}
	sign := 1
	if a[0] == '-' {
		sign = -1
	}
	f, float := y.(float64)
	if !float {
		return sign, true // y is an int64
	}
	if math.IsNaN(f) {
		return 0, false
	}
	if math.IsInf(f, 0) {
		return cmpFloat(0, f)
	}
	if len(a) > mostDigits {
		return sign, true
	}
	n, _ := new(big.Int).SetString(string(a), 10)
	return new(big.Float).SetInt(n).Cmp(big.NewFloat(f)), true
}

// cmpDigits compares two whole numbers as they are written; JSON allows no leading zeros.
func cmpDigits(a, b string) int {
	negA, negB := a[0] == '-', b[0] == '-'
	switch {
	case negA && negB:
		return cmpDigits(b[1:], a[1:])
	case negA:
		return -1
	case negB:
		return 1
	case len(a) != len(b):
		return cmpInt(int64(len(a)), int64(len(b)))
	}
	return strings.Compare(a, b)
}

// float returns a number as a float.
func (r *run) float(v any) (float64, error) {
	switch x := v.(type) {
	case int64:
		return float64(x), nil
	case float64:
		return x, nil
	case json.Number:
		if f, err := strconv.ParseFloat(string(x), 64); err == nil {
			return f, r.scan(len(x))
		}
	}
	return 0, r.fail("the number is too large to compute with")
}

// checked returns a result of arithmetic, or an error if it is not finite.
func (r *run) checked(f float64) (any, error) {
	if !finite(f) {
		return nil, r.fail("the result is too large or not a number")
	}
	return f, nil
}

func (r *run) overflow() error {
	return r.fail("the whole number is too large; multiply by 1.0 to compute with less precision")
}

func (r *run) minus(x any) (any, error) {
	if err := r.step(1); err != nil {
		return nil, err
	}
	switch x := x.(type) {
	case int64:
		if x == math.MinInt64 {
			return nil, r.overflow()
		}
		return -x, nil
	case float64:
		return r.checked(-x)
	case time.Duration:
		if x == math.MinInt64 {
			return nil, r.overflow()
		}
		return -x, nil
	case json.Number:
		if digits, negative := strings.CutPrefix(string(x), "-"); negative {
			v, _ := normNumber(json.Number(digits))
			return v, r.alloc(len(x))
		}
		v, _ := normNumber("-" + x)
		return v, r.alloc(len(x))
	}
	return nil, r.fail("%q needs a number, not %s", "-", typeName(x))
}

// arithmetic answers + - * / %.
func (r *run) arithmetic(op string, x, y any) (any, error) {
	if isNumber(x) && isNumber(y) {
		a, wholeA := x.(int64)
		b, wholeB := y.(int64)
		if wholeA && wholeB {
			return r.wholeArithmetic(op, a, b)
		}
		return r.floatArithmetic(op, x, y)
	}
	if op == "+" {
		_, textX := x.(string)
		_, textY := y.(string)
		if textX && joins(y) || textY && joins(x) {
			return r.concat(x, y)
		}
	}
	if v, known, err := r.dateArithmetic(op, x, y); known || err != nil {
		return v, err
	}
	hint := ""
	switch {
	case x == nil || y == nil:
		hint = "; give a default with ??"
	case typeName(x) != typeName(y):
		hint = remedy(x, y)
	}
	return nil, r.fail("%q cannot take %s and %s%s", op, typeName(x), typeName(y), hint)
}

// joins says whether + joins v to a text. Null does not: what is missing should not become the word null.
func joins(v any) bool {
	switch v.(type) {
	case string, bool, time.Time:
		return true
	}
	return isNumber(v)
}

func (r *run) concat(x, y any) (any, error) {
	a, err := r.text(x)
	if err != nil {
		return nil, err
	}
	b, err := r.text(y)
	if err != nil {
		return nil, err
	}
	if err := r.alloc(16 + len(a) + len(b)); err != nil {
		return nil, err
	}
	return a + b, nil
}

func (r *run) wholeArithmetic(op string, a, b int64) (any, error) {
	switch op {
	case "+":
		if sum := a + b; (sum > a) == (b > 0) {
			return sum, nil
		}
	case "-":
		if diff := a - b; (diff < a) == (b > 0) {
			return diff, nil
		}
	case "*":
		if product, ok := multiply(a, b); ok {
			return product, nil
		}
	case "/":
		switch {
		case b == 0:
			return nil, r.fail("division by zero")
		case a == math.MinInt64 && b == -1:
			return nil, r.overflow()
		case a%b == 0:
			return a / b, nil
		}
		return r.checked(float64(a) / float64(b))
	case "%":
		if b == 0 {
			return nil, r.fail("division by zero")
		}
		return a % b, nil
	}
	return nil, r.overflow()
}

func multiply(a, b int64) (int64, bool) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	negative := (a < 0) != (b < 0)
	switch {
	case high != 0 || low > 1<<63 || low == 1<<63 && !negative:
		return 0, false
	case negative:
		return -int64(low), true // also right for 1<<63
	}
	return int64(low), true
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

func (r *run) floatArithmetic(op string, x, y any) (any, error) {
	a, err := r.float(x)
	if err != nil {
		return nil, err
	}
	b, err := r.float(y)
	if err != nil {
		return nil, err
	}
	switch op {
	case "+":
		return r.checked(a + b)
	case "-":
		return r.checked(a - b)
	case "*":
		return r.checked(a * b)
	}
	if b == 0 {
		return nil, r.fail("division by zero")
	}
	if op == "/" {
		return r.checked(a / b)
	}
	return r.checked(math.Mod(a, b))
}

// wholeIfFits makes a float that has no fraction an int64 where it fits.
func wholeIfFits(f float64) any {
	if f >= -1<<63 && f < 1<<63 && f == math.Trunc(f) {
		return int64(f)
	}
	return f
}
