package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"tandem/app"
	"tandem/console/table"
)

// WriteOut writes a document to a file, or to where output goes. A file is there as a whole or not at all.
func WriteOut(stdout io.Writer, file string, data []byte) error {
	if file == "" {
		if _, err := stdout.Write(data); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
		return nil
	}
	part := file + ".part"
	if err := os.WriteFile(part, data, 0o600); err != nil {
		return fmt.Errorf("write %q: %w", file, err)
	}
	if err := os.Rename(part, file); err != nil {
		return fmt.Errorf("write %q: %w", file, errors.Join(err, os.Remove(part)))
	}
	return nil
}

// ExportExecution writes an execution down as one JSON document. Inputs is of how many activations the input is worked out.
func ExportExecution(ctx context.Context, tty *Terminal, c *app.Connection, id, file string, inputs int) error {
	record, err := c.ExportExecution(ctx, id, inputs)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := table.JSON(&b, record); err != nil {
		return err
	}
	return WriteOut(tty.Out, file, b.Bytes())
}

// ExportFixture writes an execution down as a recorded run that can be played again, and says what will not be compared or is different
// already.
func ExportFixture(ctx context.Context, tty *Terminal, c *app.Connection, id, file string) error {
	f, report, err := c.Record(ctx, id)
	if err != nil {
		return err
	}
	data, err := f.Encode()
	if err != nil {
		return err
	}
	if err := WriteOut(tty.Out, file, data); err != nil {
		return err
	}
	for _, place := range f.Ignore {
		fmt.Fprintf(tty.Err, "not the same each time, so it will not be compared: %s\n", place)
	}
	for _, d := range report.Differences {
		fmt.Fprintf(tty.Err, "warning: \"tandem test\" will find a difference: %s\n", d)
	}
	return nil
}
