package tree

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"

	"tandem/api"
)

// screen redraws some lines in place at the end of what a terminal shows. Every drawing is one write, and lines are
// overwritten and not erased first, so nothing flickers.
type screen struct {
	out io.Writer
	// size is asked before every drawing, so a change of it needs no signal.
	size func() (width, height int)
	// drawn are the widths of the lines that stand there, for width the terminal had.
	drawn []int
	last  string
}

// draw replaces what was drawn before.
func (s *screen) draw(lines []string) error {
	width, _ := s.size()
	var b strings.Builder
	b.WriteString("\x1b[?2026h\x1b[?25l") // as one picture, where the terminal can; without a cursor
	b.WriteString(s.back(width))
	s.drawn = s.drawn[:0]
	for _, l := range lines {
		b.WriteString(l)
		b.WriteString("\x1b[K\r\n")
		s.drawn = append(s.drawn, ansi.StringWidth(l))
	}
	b.WriteString("\x1b[J\x1b[?2026l")
	if b.String() == s.last {
		return nil
	}
	s.last = b.String()
	_, err := io.WriteString(s.out, s.last)
	return err
}

// back goes to the beginning of what was drawn. A terminal that has become narrower has broken lines in two.
func (s *screen) back(width int) string {
	rows := 0
	for _, w := range s.drawn {
		rows++
		if width > 0 && w > width {
			rows += (w - 1) / width
		}
	}
	if rows == 0 {
		return "\r"
	}
	return fmt.Sprintf("\r\x1b[%dA", rows)
}

// leave lets what was drawn stand and gives the cursor back.
func (s *screen) leave() error {
	s.drawn, s.last = nil, ""
	_, err := io.WriteString(s.out, "\x1b[?25h")
	return err
}

// terminal returns the screen of an output that is one, and whether it shows colours. Without one, or when the terminal
// can do nothing but print, there is none.
func terminal(out io.Writer) (_ *screen, colour bool) {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(f.Fd()) || os.Getenv("TERM") == "dumb" {
		return nil, false
	}
	size := func() (int, int) {
		width, height, err := term.GetSize(f.Fd())
		if err != nil || width <= 0 {
			return 80, 24 // it tells no size; what most have
		}
		return width, height
	}
	return &screen{out: out, size: size}, os.Getenv("NO_COLOR") == ""
}

// IsTerminal says that an output is a terminal on which something can be drawn.
func IsTerminal(out io.Writer) bool {
	s, _ := terminal(out)
	return s != nil
}

// live draws a tree again and again while frames come in. Frames come from one goroutine, the drawing is done by another,
// and mu is between them.
type live struct {
	mu     sync.Mutex
	tree   *tree
	screen *screen
	colour bool
	beat   int
	// err is the first error of drawing; over says that the last drawing was made.
	err     error
	started bool
	over    bool
	stop    chan struct{}
	done    chan struct{}
}

// tick is how often the screen is drawn.
const tick = 80 * time.Millisecond

func newLive(s *screen, t *tree, colour bool) *live {
	return &live{tree: t, screen: s, colour: colour, stop: make(chan struct{}), done: make(chan struct{})}
}

// start begins to draw; [live.end] ends it.
func (l *live) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.started {
		return
	}
	l.started = true
	go l.loop()
}

func (l *live) loop() {
	defer close(l.done)
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-t.C:
			l.mu.Lock()
			l.beat++
			l.draw(true)
			l.mu.Unlock()
		}
	}
}

// draw draws the tree as it is now; mu is held.
func (l *live) draw(bounded bool) {
	v := view{colour: l.colour, now: time.Now(), beat: l.beat}
	v.width, v.height = l.screen.size()
	if !bounded {
		v.height = 0
	}
	if err := l.screen.draw(l.tree.draw(v)); err != nil && l.err == nil {
		l.err = err
	}
}

// frame takes a frame in.
func (l *live) frame(e api.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	return l.tree.apply(e)
}

// hold says that nothing moves while a person is asked.
func (l *live) hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tree.held = held
}

// notice shows what an execution asks that this one has started.
func (l *live) notice(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tree.below = text
}

// settle says that what is drawn last is to stand still.
func (l *live) settle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tree.still = true
}

// endDrawing draws the tree a last time, in full, and gives the terminal back. What comes later is not drawn.
func (l *live) endDrawing() error {
	l.mu.Lock()
	again, started := l.over, l.started
	l.over = true
	l.mu.Unlock()
	if !started || again {
		return nil
	}
	close(l.stop)
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw(false)
	if err := l.screen.leave(); err != nil && l.err == nil {
		l.err = err
	}
	return l.err
}
