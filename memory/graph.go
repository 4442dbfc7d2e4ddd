package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tandem/fault"
	"tandem/store"
)

// GraphConfig are the configurations of a graph.
type GraphConfig struct {
	Operation string `json:"operation" enum:"add|query|add_and_query|path|delete" legacy:"load_context|remember" doc:"What is done; without it the input says so." zh:"执行的操作；省略时由输入决定。"`
	Common
	NodeTypes                     []string `json:"node_types" doc:"The types of nodes." zh:"节点类型。"`
	RelationshipTypes             []string `json:"relationship_types" doc:"The types of relationships." zh:"关系类型。"`
	TraversalDepth                int      `json:"traversal_depth" range:"1..10" doc:"How many steps a walk takes from its start." zh:"从起点遍历的步数。"`
	RelationshipStrengthThreshold float64  `json:"relationship_strength_threshold" range:"0..1" doc:"How strong a relationship must be to be walked along, from 0 to 1." zh:"可遍历关系的强度下限（0 到 1）。"`
}

// Defaults sets what is not configured.
func (c *GraphConfig) Defaults() {
	c.Common, c.TraversalDepth, c.RelationshipStrengthThreshold = common(), 2, 0.3
	c.NodeTypes = []string{"concept", "entity", "event", "topic"}
	c.RelationshipTypes = []string{"related_to", "part_of", "depends_on", "similar_to"}
}

// GraphNode is a node of a graph.
type GraphNode struct {
	ID         string          `json:"id"`
	Type       string          `json:"type,omitempty"`
	Label      string          `json:"label,omitempty"`
	Properties json.RawMessage `json:"properties,omitempty"`
}

// UnmarshalJSON reads a node; a text alone is its id.
func (n *GraphNode) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &n.ID)
	}
	type plain GraphNode
	return json.Unmarshal(raw, (*plain)(n))
}

// GraphEdge is a relationship between two nodes.
type GraphEdge struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Type   string `json:"type,omitempty"`
	// Weight is how strong it is, above 0 and up to 1; 1 when it is not given.
	Weight *float64 `json:"weight,omitempty"`
}

// GraphInput is what a graph is asked.
type GraphInput struct {
	Ask
	Nodes         []GraphNode   `json:"nodes,omitempty" doc:"The nodes to add or remove." zh:"要添加或删除的节点。"`
	Relationships []GraphEdge   `json:"relationships,omitempty" doc:"The relationships to add or remove." zh:"要添加或删除的关系。"`
	StartNode     string        `json:"start_node,omitempty" doc:"Where a walk begins." zh:"遍历的起点。"`
	Filters       *GraphFilters `json:"filters,omitempty" doc:"Which nodes and relationships a walk takes." zh:"遍历哪些节点和关系。"`
	From          string        `json:"from,omitempty" doc:"Where a path begins." zh:"路径的起点。"`
	To            string        `json:"to,omitempty" doc:"Where it ends." zh:"路径的终点。"`
	ID            string        `json:"id,omitempty" doc:"The node to remove." zh:"要删除的节点。"`
}

// GraphFilters narrow a traversal.
type GraphFilters struct {
	NodeTypes         []string `json:"node_types,omitempty"`
	RelationshipTypes []string `json:"relationship_types,omitempty"`
	MinStrength       float64  `json:"min_strength,omitempty"`
	Depth             int      `json:"depth,omitempty"`
	// Direction is out, in or both; both when it is empty.
	Direction string `json:"direction,omitempty"`
}

// GraphOutput is what a graph answers.
type GraphOutput struct {
	Answer
	Paths               []GraphPath `json:"paths" doc:"The ways that were found, the strongest first." zh:"找到的路径，最强的在前。"`
	ConnectedNodes      []Connected `json:"connected_nodes" doc:"The nodes that can be reached, with their distance." zh:"可到达的节点及其距离。"`
	RelationshipSummary string      `json:"relationship_summary" doc:"All of it as text." zh:"以上内容的文本。"`
	Deleted             int         `json:"deleted,omitempty" doc:"How many were removed." zh:"删除的数量。"`
}

// GraphPath is a way through a graph.
type GraphPath struct {
	Nodes         []string `json:"nodes"`
	Relationships []string `json:"relationships"`
	// Strength is the product of the weights.
	Strength float64 `json:"strength"`
}

// Connected is a node that can be reached.
type Connected struct {
	NodeID             string  `json:"node_id"`
	Type               string  `json:"type,omitempty"`
	Label              string  `json:"label,omitempty"`
	Distance           int     `json:"distance"`
	ConnectionStrength float64 `json:"connection_strength"`
}

// Sorts of records of graphs.
const (
	sortNode = "node"
	sortEdge = "edge"
)

type graph struct {
	*session
	cfg GraphConfig
}

func (s *Store) openGraph(call Call, c GraphConfig) *graph {
	return &graph{s.open(call, "GRAPH_MEMORY", c.Common, ""), c}
}

func (c GraphConfig) open(s *Store, call Call) (keeper, error) { return s.openGraph(call, c), nil }

// Graph keeps nodes and weighted edges.
func (s *Store) Graph(ctx context.Context, c Call, cfg GraphConfig, in GraphInput) (out GraphOutput, err error) {
	op := operation(cfg.Operation, in.Operation, "")
	g := s.openGraph(c, cfg)
	out.Paths, out.ConnectedNodes = []GraphPath{}, []Connected{}
	if done, err := attached(ctx, g, op, in.Ask, &out.Answer); done || err != nil {
		return out, err
	}
	var filters GraphFilters
	if in.Filters != nil {
		filters = *in.Filters
	}
	if !slices.Contains([]string{"", "out", "in", "both"}, filters.Direction) {
		return out, fault.Newf(fault.InvalidInput, `"filters.direction" must be "out", "in" or "both", not %q`, filters.Direction).With("path", "filters.direction")
	}
	switch op {
	case "add", "add_and_query":
		if len(in.Nodes) == 0 && len(in.Relationships) == 0 {
			return out, required(op, "nodes")
		}
		if op == "add_and_query" && in.StartNode == "" {
			return out, required(op, "start_node")
		}
		if err := g.addToGraph(ctx, in.Nodes, in.Relationships); err != nil {
			return out, err
		}
		out.Stored = yes(true)
		if op == "add" {
			return out, nil
		}
		return out, g.query(ctx, &out, in.StartNode, filters)
	case "query":
		if in.StartNode == "" {
			return out, required(op, "start_node")
		}
		return out, g.query(ctx, &out, in.StartNode, filters)
	case "path":
		if in.From == "" {
			return out, required(op, "from")
		}
		if in.To == "" {
			return out, required(op, "to")
		}
		return out, g.path(ctx, &out, in.From, in.To, filters)
	case "delete":
		nodes := in.Nodes
		if in.ID != "" {
			nodes = append(nodes, GraphNode{ID: in.ID})
		}
		if len(nodes) == 0 && len(in.Relationships) == 0 {
			return out, required(op, "nodes")
		}
		out.Deleted, err = g.drop(ctx, nodes, in.Relationships)
		return out, err
	}
	return out, unknown(op, "add", "query", "add_and_query", "path", "delete", LoadContext, Remember)
}

// oneOf refuses a type that is not configured; empty is the first.
func oneOf(field, value string, known []string) (string, error) {
	if value == "" && len(known) > 0 {
		return known[0], nil
	}
	for _, k := range known {
		if strings.EqualFold(k, value) {
			return k, nil
		}
	}
	return "", fault.Newf(fault.InvalidInput, `%q has %q; there are "%s"`, field, value, strings.Join(known, `", "`)).With("path", field)
}

func edgeID(e GraphEdge) string { return "edge_" + digest(e.Source, e.Type, e.Target) }

func nodeRecord(n GraphNode) (store.MemoryRecord, error) {
	raw, err := body("node", n)
	return store.MemoryRecord{Sort: sortNode, ID: n.ID, Body: raw, Text: &store.MemoryText{Title: n.ID + "\n" + n.Label, Extra: n.Type}},
		err
}

// maxBatch bounds what one operation adds.
const maxBatch = 10_000

// addToGraph stores nodes and edges. An edge brings the nodes that it needs; what is there keeps what is not given anew.
func (g *graph) addToGraph(ctx context.Context, nodes []GraphNode, edges []GraphEdge) error {
	if len(nodes)+len(edges) > maxBatch {
		return fault.Newf(fault.TooLarge, "%d nodes and relationships are too many at once; add up to %d", len(nodes)+len(edges), maxBatch)
	}
	nodes, edges = slices.Clone(nodes), slices.Clone(edges)
	var put []store.MemoryRecord
	named := map[string]bool{}
	for i := range nodes {
		if nodes[i].ID == "" {
			return fault.Newf(fault.InvalidInput, "%q has no id", fmt.Sprintf("nodes[%d]", i)).With("path", fmt.Sprintf("nodes[%d].id", i))
		}
		named[nodes[i].ID] = true
	}
	var ends []string
	for i := range edges {
		e, at := &edges[i], fmt.Sprintf("relationships[%d]", i)
		if e.Source == "" || e.Target == "" {
			return fault.Newf(fault.InvalidInput, "%q needs a source and a target", at).With("path", at)
		}
		weight := 1.0
		if e.Weight != nil {
			weight = *e.Weight
		}
		if !(weight > 0 && weight <= 1) {
			return fault.Newf(fault.InvalidInput, "%q must be a number above 0 and up to 1", at+".weight").With("path", at+".weight")
		}
		var err error
		if e.Type, err = oneOf(at+".type", e.Type, g.cfg.RelationshipTypes); err != nil {
			return err
		}
		e.Weight = &weight
		raw, err := body(at, e)
		if err != nil {
			return err
		}
		put = append(put, store.MemoryRecord{Sort: sortEdge, ID: edgeID(*e), Body: raw, Source: e.Source, Target: e.Target, Weight: weight})
		ends = append(ends, e.Source, e.Target)
	}
	_, err := g.change(ctx, func(ctx context.Context, _ int64) (d draft, err error) {
		var ids []string
		for _, n := range nodes {
			ids = append(ids, n.ID)
		}
		records, err := g.list(ctx, store.MemoryQuery{Sort: sortNode, IDs: append(ids, ends...)})
		if err != nil {
			return d, err
		}
		known := map[string]GraphNode{}
		list, err := readAll[GraphNode](records)
		if err != nil {
			return d, err
		}
		for _, n := range list {
			known[n.ID] = n
		}
		d.Put = slices.Clone(put)
		keep := func(i int, n GraphNode) error {
			old := known[n.ID]
			n.Type, n.Label = cmp.Or(n.Type, old.Type), cmp.Or(n.Label, old.Label)
			if len(n.Properties) == 0 {
				n.Properties = old.Properties
			}
			if n.Type, err = oneOf(fmt.Sprintf("nodes[%d].type", i), n.Type, g.cfg.NodeTypes); err != nil {
				return err
			}
			record, err := nodeRecord(n)
			d.Put = append(d.Put, record)
			known[n.ID] = n
			return err
		}
		for i, n := range nodes {
			if err := keep(i, n); err != nil {
				return d, err
			}
		}
		for _, id := range ends {
			if _, ok := known[id]; !ok && !named[id] {
				if err := keep(0, GraphNode{ID: id}); err != nil {
					return d, err
				}
			}
		}
		return d, nil
	})
	return err
}

// Bounds of a traversal: how many nodes it reaches, and how many edges it looks at in one step.
const (
	maxReached = 1000
	maxEdges   = 20_000
)

// reached is a node as a traversal has come to it: by the fewest edges, and of such ways the strongest.
type reached struct {
	id       string
	distance int
	strength float64
	from     string
	edge     GraphEdge
}

// traverse goes out from a node, step by step. It ends at depth, at a bound, or when until has been reached.
func (g *graph) traverse(ctx context.Context, start string, f GraphFilters, depth int, until string) (map[string]reached, error) {
	all := map[string]reached{start: {id: start, strength: 1}}
	least := max(g.cfg.RelationshipStrengthThreshold, f.MinStrength)
	layer := []string{start}
	for distance := 1; distance <= depth && len(layer) > 0 && len(all) <= maxReached; distance++ {
		edges, err := g.edges(ctx, layer, f)
		if err != nil {
			return nil, err
		}
		next := nextLayer(all, edges, f, least, distance)
		// When there are too many, the strongest are kept.
		list := make([]reached, 0, len(next))
		for _, id := range sortedKeys(next) {
			list = append(list, next[id])
		}
		slices.SortStableFunc(list, func(a, b reached) int { return cmp.Compare(b.strength, a.strength) })
		layer = layer[:0]
		for _, r := range list[:min(len(list), maxReached+1-len(all))] {
			all[r.id] = r
			layer = append(layer, r.id)
		}
		if _, ok := all[until]; ok && until != "" {
			break
		}
		if r, ok := next[until]; ok && until != "" { // looked for, and cut off by the bound
			all[until] = r
			break
		}
	}
	return all, nil
}

// nextLayer are the nodes that are reached by one more edge of those given, each by its strongest way.
func nextLayer(all map[string]reached, edges []GraphEdge, f GraphFilters, least float64, distance int) map[string]reached {
	next := map[string]reached{}
	for _, e := range edges {
		if *e.Weight < least || len(f.RelationshipTypes) > 0 && !slices.Contains(f.RelationshipTypes, e.Type) {
			continue
		}
		for _, way := range [][2]string{{e.Source, e.Target}, {e.Target, e.Source}} {
			if way[0] == e.Source && f.Direction == "in" || way[0] == e.Target && e.Source != e.Target && f.Direction == "out" {
				continue
			}
			from, ok := all[way[0]]
			if _, seen := all[way[1]]; !ok || from.distance != distance-1 || seen {
				continue
			}
			r := reached{way[1], distance, from.strength * *e.Weight, way[0], e}
			if old, twice := next[r.id]; !twice || r.strength > old.strength || r.strength == old.strength && r.from < old.from {
				next[r.id] = r
			}
		}
	}
	return next
}

// edges are those of some nodes, the strongest first.
func (g *graph) edges(ctx context.Context, nodes []string, f GraphFilters) ([]GraphEdge, error) {
	q := store.MemoryQuery{Sort: sortEdge, Order: store.HeaviestFirst, Limit: maxEdges}
	if f.Direction != "in" {
		q.Sources = nodes
	}
	if f.Direction != "out" {
		q.Targets = nodes
	}
	records, err := g.list(ctx, q)
	if err != nil {
		return nil, err
	}
	return readAll[GraphEdge](records)
}

// pathTo goes back from a node to where the traversal began.
func pathTo(all map[string]reached, id string) GraphPath {
	p := GraphPath{Nodes: []string{id}, Relationships: []string{}, Strength: round(all[id].strength)}
	for at := all[id]; at.distance > 0; at = all[at.from] {
		p.Nodes = append(p.Nodes, at.from)
		p.Relationships = append(p.Relationships, at.edge.Type)
	}
	slices.Reverse(p.Nodes)
	slices.Reverse(p.Relationships)
	return p
}

// round takes away what only the arithmetic has added.
func round(f float64) float64 {
	var out float64
	if _, err := fmt.Sscanf(fmt.Sprintf("%.9g", f), "%g", &out); err != nil {
		return f
	}
	return out
}

// query tells what can be reached from a node, the nearest first, of those the strongest.
func (g *graph) query(ctx context.Context, out *GraphOutput, start string, f GraphFilters) error {
	if n, err := g.nodes(ctx, []string{start}); err != nil || len(n) == 0 {
		return err // a node that is not there is connected with nothing
	}
	depth := g.cfg.TraversalDepth
	if f.Depth > 0 {
		depth = min(f.Depth, 10)
	}
	all, err := g.traverse(ctx, start, f, depth, "")
	if err != nil {
		return err
	}
	nodes, err := g.nodes(ctx, sortedKeys(all))
	if err != nil {
		return err
	}
	for _, id := range sortedKeys(all) {
		n := nodes[id]
		if id == start || len(f.NodeTypes) > 0 && !slices.Contains(f.NodeTypes, n.Type) {
			continue
		}
		out.ConnectedNodes = append(out.ConnectedNodes, Connected{id, n.Type, n.Label, all[id].distance, round(all[id].strength)})
	}
	slices.SortStableFunc(out.ConnectedNodes, func(a, b Connected) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(b.ConnectionStrength, a.ConnectionStrength))
	})
	for _, c := range out.ConnectedNodes[:min(len(out.ConnectedNodes), 100)] {
		out.Paths = append(out.Paths, pathTo(all, c.NodeID))
	}
	out.RelationshipSummary = g.write(out.Paths, 2000).Text
	out.Context = g.write(out.Paths, g.cfg.MaxContextChars).Text
	return nil
}

func (g *graph) nodes(ctx context.Context, ids []string) (map[string]GraphNode, error) {
	records, err := g.list(ctx, store.MemoryQuery{Sort: sortNode, IDs: ids})
	if err != nil {
		return nil, err
	}
	list, err := readAll[GraphNode](records)
	byID := map[string]GraphNode{}
	for _, n := range list {
		byID[n.ID] = n
	}
	return byID, err
}

// maxPath is how long a path may be that is looked for.
const maxPath = 10

// path finds the shortest way between two nodes, of several the strongest.
func (g *graph) path(ctx context.Context, out *GraphOutput, from, to string, f GraphFilters) error {
	ends, err := g.nodes(ctx, []string{from, to})
	if err != nil {
		return err
	}
	if _, ok := ends[from]; !ok {
		return nil
	}
	if _, ok := ends[to]; !ok {
		return nil
	}
	depth := maxPath
	if f.Depth > 0 {
		depth = min(f.Depth, maxPath)
	}
	all, err := g.traverse(ctx, from, f, depth, to)
	if err != nil {
		return err
	}
	if _, ok := all[to]; ok {
		out.Paths = append(out.Paths, pathTo(all, to))
		n := ends[to]
		out.ConnectedNodes = append(out.ConnectedNodes, Connected{to, n.Type, n.Label, all[to].distance, round(all[to].strength)})
	}
	out.RelationshipSummary = g.write(out.Paths, 2000).Text
	out.Context = g.write(out.Paths, g.cfg.MaxContextChars).Text
	return nil
}

func (g *graph) drop(ctx context.Context, nodes []GraphNode, edges []GraphEdge) (int, error) {
	receipt, err := g.change(ctx, func(ctx context.Context, _ int64) (d draft, err error) {
		ids := []string{}
		for _, n := range nodes {
			ids = append(ids, n.ID)
		}
		records, err := g.list(ctx, store.MemoryQuery{Sort: sortNode, IDs: ids})
		if err != nil {
			return d, err
		}
		for _, e := range edges {
			if e.Type, err = oneOf("relationships[].type", e.Type, g.cfg.RelationshipTypes); err != nil {
				return d, err
			}
			d.Delete = append(d.Delete, store.MemoryKey{Sort: sortEdge, ID: edgeID(e)})
		}
		if len(ids) > 0 {
			theirs, err := g.list(ctx, store.MemoryQuery{Sort: sortEdge, Sources: ids, Targets: ids})
			if err != nil {
				return d, err
			}
			records = append(records, theirs...)
		}
		for _, r := range records {
			d.Delete = append(d.Delete, store.MemoryKey{Sort: r.Sort, ID: r.ID})
		}
		d.idle = len(d.Delete) == 0
		return d, nil
	})
	return receipt.Deleted, err
}

// write tells ways, one to a line.
func (g *graph) write(paths []GraphPath, room int) Context {
	var told Context
	w := writing{room: room}
	for _, p := range paths {
		text := p.Nodes[0]
		for i, relation := range p.Relationships {
			text += " -" + relation + "- " + p.Nodes[i+1]
		}
		if w.line("%s (%.2f)", text, p.Strength) {
			told.Items++
		}
	}
	told.Text = w.String()
	return told
}

// context is what can be reached from the nodes that a question names.
func (g *graph) context(ctx context.Context, query string) (Context, error) {
	version, err := g.version(ctx)
	words := store.Query(query, maxTerms)
	if err != nil || version < 0 || len(words) == 0 {
		return Context{}, err
	}
	found, err := g.o.Records.Search(ctx, g.principal(),
		store.MemorySearch{Scope: g.scope.ID, Sort: sortNode, Words: words, Title: true, Now: g.millis(), Limit: 5})
	if err != nil {
		return Context{}, err
	}
	var out GraphOutput
	for _, r := range found.Records {
		if err := g.query(ctx, &out, r.ID, GraphFilters{}); err != nil {
			return Context{}, err
		}
	}
	return g.write(out.Paths, g.cfg.MaxContextChars), nil
}

// remember takes the entities of an exchange for nodes and joins them where the text does.
func (g *graph) remember(ctx context.Context, e Exchange) (bool, error) {
	found := g.findEntities(ctx, cut(e.text(), maxBytes/4), []string{"person", "organization", "location", "product", "concept"})
	kind := "entity"
	if !slices.Contains(g.cfg.NodeTypes, kind) {
		kind = ""
	}
	var nodes []GraphNode
	var edges []GraphEdge
	for _, f := range found.Entities {
		if f.Confidence >= 0.7 && len(nodes) < 50 && strings.TrimSpace(f.Name) != "" {
			nodes = append(nodes, GraphNode{ID: nameKey(f.Name), Label: f.Name, Type: kind})
		}
	}
	for _, r := range found.Relationships {
		weight := min(r.Confidence, 1)
		if weight > 0 && len(edges) < 50 && strings.TrimSpace(r.Source) != "" && strings.TrimSpace(r.Target) != "" {
			edges = append(edges, GraphEdge{Source: nameKey(r.Source), Target: nameKey(r.Target), Weight: &weight})
		}
	}
	if len(nodes) == 0 && len(edges) == 0 {
		return false, nil
	}
	return true, g.addToGraph(ctx, nodes, edges)
}
