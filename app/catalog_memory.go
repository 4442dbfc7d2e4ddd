package app

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"tandem/fault"
	"tandem/memory"
	"tandem/workflow"
)

// memoryCommon is shared by all memories. They live in Tandem's own database, so where older files keep them is moot.
const memoryCommon = `session_id:tmpl; max_context_chars=8000[1..]; llm_profile; profile_id -> llm_profile;
	drop storage_backend, connection_config, database_provider, database_url, table_name, graph_database`

// memoryKinds remember. Record ids are derived, so storing twice stores once. Whoever a memory is attached to asks it with
// load_context and remember. The least similarity depends on what made the vectors: 0.7, or 0.3 for the local embedder.
func memoryKinds() []kind {
	return []kind{
		{subtype: "CONVERSATION_BUFFER", effect: workflow.Idempotent,
			config: `operation{add|get|clear|~load_context|~remember}; max_messages=50[1..1000]; auto_summarize=true; summarize_count=10[1..]`},
		{subtype: "CONVERSATION_SUMMARY", effect: workflow.Idempotent,
			config: `operation{update|get|clear|~load_context|~remember}; max_summary_chars=2000[1..]; update_every=5[1..]`},
		{subtype: "VECTOR_DATABASE", effect: workflow.Idempotent, rules: vectorRules,
			config: `operation{search|store|update|delete|reindex|~load_context|~remember}; embedding_profile; similarity_threshold:num[0..1]; max_results=5[1..50]`},
		{subtype: "KEY_VALUE_STORE", effect: workflow.Idempotent, rules: modellessRules,
			config: `operation{get|delete|exists|set|keys|increment|clear|~load_context|~remember}; default_ttl=0[0..]; key_prefix; max_keys=1000[1..100000]`},
		{subtype: "DOCUMENT_STORE", effect: workflow.Idempotent, rules: modellessRules,
			config: `operation{search|store|update|delete|get|~load_context|~remember}; collection_name*=documents; search_fields:list{content|title|description|tags|metadata}=[content,title,description];
				max_results=10[1..]; relevance_scoring{bm25|tf_idf|hybrid}=bm25; auto_capture_from_ai=true`},
		{subtype: "ENTITY_MEMORY", effect: workflow.Idempotent, rules: entityRules,
			config: `operation{extract|get|search|merge|delete|~load_context|~remember}; entity_types:list=[person,organization,location,product,concept];
				confidence_threshold:num=0.7[0..1]`},
		{subtype: "EPISODIC_MEMORY", effect: workflow.Idempotent, rules: episodeRules,
			config: `operation{store|query|delete|~load_context|~remember}; importance_threshold:num=0.5[0..1]; retention_period="30 days"; temporal_context_window="7 days"`},
		{subtype: "KNOWLEDGE_BASE", effect: workflow.Idempotent, rules: knowledgeRules,
			config: `operation{store|query|update|delete|~extract_and_store|~load_context|~remember}; confidence_threshold:num=0.8[0..1];
				knowledge_domains:list=[general,technical,business]`},
		{subtype: "GRAPH_MEMORY", effect: workflow.Idempotent,
			config: `operation{add|query|add_and_query|path|delete|~load_context|~remember}; node_types:list=[concept,entity,event,topic];
				relationship_types:list=[related_to,part_of,depends_on,similar_to]; traversal_depth=2[1..10];
				relationship_strength_threshold:num=0.3[0..1]`},
		{subtype: "WORKING_MEMORY", effect: workflow.Idempotent, rules: modellessRules,
			config: `operation{store|get|list|delete|clear|~retrieve|~load_context|~remember}; capacity_limit=100[1..1000]; eviction_policy{importance|lru|fifo}=importance;
				ttl_seconds=86400[0..]; namespace`},
	}
}

// modellessRules are for memories that have no use for a model.
func modellessRules(c *config) {
	if c.has("llm_profile") {
		c.warnf(workflow.ProblemConfig, c.at("llm_profile"), "llm_profile does nothing here: %s asks no model; remove it", c.node.Kind())
	}
}

func vectorRules(c *config) {
	modellessRules(c)
	threshold, known := c.number("similarity_threshold")
	if known && threshold > memory.LocalLikeness && !c.has("embedding_profile") && !c.has("template_id") {
		c.warnf(problemNeedsModel, c.at("similarity_threshold"), "similarity_threshold %g is for an embedding model: without embedding_profile only words are compared, and texts about the same seldom reach %g; leave it out (%g), or set embedding_profile to a profile with an embedding_model",
			threshold, memory.LocalLikeness, memory.LocalThreshold)
	}
}

// surerThanRules warns of a threshold that nothing reaches without a model.
func (c *config) surerThanRules() {
	threshold, known := c.number("confidence_threshold")
	if known && threshold > memory.RuleConfidence && !c.has("llm_profile") && !c.has("template_id") {
		c.warnf(problemNeedsModel, c.at("confidence_threshold"), "confidence_threshold %g is more than the rules are sure of, which is %g at most; lower it, or set llm_profile to have a model look", threshold, memory.RuleConfidence)
	}
}

func entityRules(c *config) {
	c.surerThanRules()
	if c.has("llm_profile") || c.has("template_id") {
		return
	}
	for i, item := range c.items("entity_types") {
		if item.Type == gjson.String && !dynamic(item) && !memory.RulesFind(item.Str) {
			c.warnf(problemNeedsModel, fmt.Sprintf("%s[%d]", c.at("entity_types"), i), "without a model no entities of the type %q are found; set llm_profile, or use person, organization, location, product, project, milestone or concept", item.Str)
		}
	}
}

func knowledgeRules(c *config) { c.surerThanRules() }

func episodeRules(c *config) {
	modellessRules(c)
	for _, name := range []string{"retention_period", "temporal_context_window"} {
		if text := c.text(name); text != "" {
			if err := memory.CheckPeriod(name, text); err != nil {
				c.errorf(workflow.ProblemConfig, c.at(name), "%s", strings.TrimSpace(fault.From(err).Message))
			}
		}
	}
}
