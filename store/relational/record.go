package relational

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"
)

// Scanner is a row.
type Scanner interface{ Scan(...any) error }

// ReadError is what a read that has not worked is answered with: why its context has ended, if it has.
func ReadError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("read the database: %w", err)
}

// Values are arguments as drivers take them.
func Values(args []any) ([]driver.Value, error) {
	values := make([]driver.Value, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string, []byte, int64, float64, nil:
			values[i] = v
		case int:
			values[i] = int64(v)
		case bool:
			values[i] = int64(0)
			if v {
				values[i] = int64(1)
			}
		default:
			value, err := driver.DefaultParameterConverter.ConvertValue(arg)
			if err != nil {
				return nil, fmt.Errorf("argument %d: %w", i+1, err)
			}
			values[i] = value
		}
	}
	return values, nil
}

// Record is a row that was read, as the driver has its columns.
type Record []driver.Value

// Scan takes the columns out of it.
func (r Record) Scan(dest ...any) error {
	if len(dest) != len(r) {
		return fmt.Errorf("the row has %d columns, and %d are wanted", len(r), len(dest))
	}
	for i, d := range dest {
		if err := scanValue(d, r[i]); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// scanValue puts a value where it is wanted. The columns of tables are strict, so a value is of the type that it is taken for; texts
// and bytes may be taken for each other.
func scanValue(dest any, value driver.Value) error {
	switch d := dest.(type) {
	case *string:
		switch v := value.(type) {
		case string:
			*d = v
			return nil
		case []byte:
			*d = string(v)
			return nil
		}
	case *[]byte:
		return scanBytes(d, value)
	case *json.RawMessage:
		return scanBytes((*[]byte)(d), value)
	case *int64:
		if v, ok := value.(int64); ok {
			*d = v
			return nil
		}
	case *int:
		if v, ok := value.(int64); ok {
			*d = int(v)
			return nil
		}
	case *uint64:
		if v, ok := value.(int64); ok && v >= 0 {
			*d = uint64(v)
			return nil
		}
	case *bool:
		if v, ok := value.(int64); ok {
			*d = v != 0
			return nil
		}
	case *float64:
		switch v := value.(type) {
		case float64:
			*d = v
			return nil
		case int64:
			*d = float64(v)
			return nil
		}
	default:
		return scanOther(reflect.ValueOf(dest).Elem(), value)
	}
	return fmt.Errorf("%T is not what %T takes", value, dest)
}

func scanBytes(d *[]byte, value driver.Value) error {
	switch v := value.(type) {
	case []byte:
		*d = v
	case string:
		*d = []byte(v)
	case nil:
		*d = nil
	default:
		return fmt.Errorf("%T is not bytes", value)
	}
	return nil
}

// scanOther is for types that have a name of their own, and for pointers to what may be missing.
func scanOther(d reflect.Value, value driver.Value) error {
	switch v := value.(type) {
	case nil:
		if d.Kind() == reflect.Pointer {
			d.SetZero()
			return nil
		}
	case string:
		if d.Kind() == reflect.String {
			d.SetString(v)
			return nil
		}
	case int64:
		if d.CanInt() && !d.OverflowInt(v) {
			d.SetInt(v)
			return nil
		}
		if d.CanUint() && v >= 0 && !d.OverflowUint(uint64(v)) {
			d.SetUint(uint64(v))
			return nil
		}
		if d.Kind() == reflect.Bool {
			d.SetBool(v != 0)
			return nil
		}
	case float64:
		if d.CanFloat() {
			d.SetFloat(v)
			return nil
		}
	}
	if d.Kind() == reflect.Pointer {
		target := reflect.New(d.Type().Elem())
		if err := scanValue(target.Interface(), value); err != nil {
			return err
		}
		d.Set(target)
		return nil
	}
	if d.Kind() == reflect.Slice && d.Type().Elem().Kind() == reflect.Uint8 {
		var b []byte
		if err := scanBytes(&b, value); err != nil {
			return err
		}
		d.SetBytes(b)
		return nil
	}
	return fmt.Errorf("%T is not what %s takes", value, d.Type())
}

// Texts writes a list as JSON; an empty one is [].
func Texts[T ~string](list []T) (string, error) {
	if list == nil {
		list = []T{}
	}
	out, err := json.Marshal(list)
	return string(out), err
}

// Raw reads JSON that may be absent.
func Raw(b []byte) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	return b
}

// SameTexts are texts that one record mostly has in common with the one before, as values for the database.
type SameTexts [8]driver.Value

// Text returns the n-th text as a value, the one of before if it is the same.
func (s *SameTexts) Text(n int, text string) driver.Value {
	if before, ok := s[n].(string); !ok || before != text {
		s[n] = text
	}
	return s[n]
}
