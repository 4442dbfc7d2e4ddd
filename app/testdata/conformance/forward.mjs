// The client that the conformance suite starts for each scenario: it hands the scenario to the test, which does what is asked with Tandem, and
// ends as that did. The suite appends the address of its server.
const response = await fetch(process.env.CONFORMANCE_TEST, {
  method: 'POST',
  body: JSON.stringify({
    scenario: process.env.MCP_CONFORMANCE_SCENARIO,
    context: JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}'),
    url: process.argv[2],
  }),
});
console.log(await response.text());
process.exitCode = response.ok ? 0 : 1;
