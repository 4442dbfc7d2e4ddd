(function () {
  "use strict";
  var compose = document.getElementById("compose"), box = document.getElementById("message"), log = document.getElementById("log");
  var notice = document.getElementById("notice"), fresh = document.getElementById("new"), main = document.querySelector("main");
  var words = JSON.parse(compose.dataset.words), lang = compose.dataset.lang;
  var kept = "tandem unsent " + location.pathname;
  var turns = {}, streams = {}, plain = "", blocked = false, sending = false;

  function at(query) { return location.pathname + "?" + query + "&lang=" + lang; }
  function tell(text, wrong) { notice.textContent = text || ""; notice.className = wrong ? "wrong" : ""; }
  function make(tag, name, text) {
    var e = document.createElement(tag);
    if (name) e.className = name;
    if (text !== undefined) e.textContent = text;
    return e;
  }
  function bubble(name, label, text) {
    var a = make("article", name);
    a.append(make("h2", "away", label), make("p", "text", text));
    return a;
  }
  function wait(ms) { return new Promise(function (go) { setTimeout(go, ms); }); }
  function down() { main.scrollTop = main.scrollHeight; }

  // ask asks the server, again and again while it cannot be reached or is not ready.
  async function ask(query, options) {
    for (var pause = 500; ; pause = Math.min(2 * pause, 8000)) {
      try {
        var answer = await fetch(at(query), Object.assign({ cache: "no-store", credentials: "same-origin" }, options));
        if (answer.status !== 502 && answer.status !== 503 && answer.status !== 504) {
          if (notice.dataset.retry) { delete notice.dataset.retry; tell(""); }
          return answer;
        }
      } catch (gone) { /* it is tried again */ }
      notice.dataset.retry = "1";
      tell(words.retry);
      await wait(pause);
    }
  }
  async function refused(answer) {
    var told = {};
    try { told = await answer.json(); } catch (none) { /* it says nothing */ }
    tell(told.detail || words.failed, true);
  }

  // view draws a message and what came of it. What is being written stays while the rest is drawn anew.
  function view(t) {
    var v = turns[t.id];
    if (!v) {
      v = turns[t.id] = { live: {}, forms: {}, order: [] };
      v.place = make("div");
      v.place.style.display = "contents";
      v.answer = bubble("said", words.answer, "");
      v.state = make("p", "state");
      v.questions = make("div");
      v.questions.style.display = "contents";
      v.place.append(bubble("asked", words.you, t.text), v.questions, v.answer, v.state);
      log.append(v.place);
    }
    v.turn = t;
    (t.questions || []).forEach(function (q) { draw(v, q); });
    paint(v);
    if (t.execution && (t.state === "running" || t.state === "waiting")) follow(v);
    return v;
  }
  function paint(v) {
    var t = v.turn, text = t.answer || "";
    if (t.state === "running" || t.state === "waiting") {
      text = v.order.map(function (id) { return v.live[id].text; }).filter(Boolean).join("\n") || text;
    } else if (t.state === "failed") {
      text = text ? text + "\n" + words.failed : words.failed;
    } else if (!text) {
      text = words.done;
    }
    var open = (t.questions || []).some(function (q) { return q.open; });
    v.answer.lastChild.textContent = text;
    v.answer.hidden = !text;
    v.answer.style.display = text ? "" : "none";
    v.state.textContent = open ? "" : t.state === "running" && !text ? words.working : t.state === "waiting" ? words.waiting : "";
    v.state.style.display = v.state.textContent ? "" : "none";
  }

  // draw shows a question: its form while it is open, then what was answered.
  function draw(v, q) {
    var had = v.forms[q.id];
    if (had && had.open === !!q.open) return;
    var place = had ? had.place : make("div");
    place.style.display = "contents";
    if (!had) v.questions.append(place);
    v.forms[q.id] = { open: !!q.open, place: place };
    place.replaceChildren();
    if (q.open) {
      fill(place, q.id);
    } else {
      place.append(bubble("said", words.question, q.title));
      if (q.answer) place.append(bubble("asked", words.you, q.answer));
    }
  }
  async function fill(place, id) {
    var answer = await ask("view=question&id=" + encodeURIComponent(id));
    if (!answer.ok) { if (answer.status !== 409) await refused(answer); return; }
    put(place, id, await answer.text());
  }
  // put shows the form that the server has drawn. Nothing of it runs: it has no script, and the policy of the page allows none.
  function put(place, id, html) {
    var article = make("article", "question");
    article.append.apply(article, Array.from(new DOMParser().parseFromString(html, "text/html").body.childNodes));
    var form = article.querySelector("form");
    form.addEventListener("submit", function (event) {
      event.preventDefault();
      answered(place, id, new FormData(form, event.submitter), form);
    });
    place.replaceChildren(article);
    down();
    var summary = article.querySelector("[role=alert]");
    if (summary) summary.focus();
  }
  async function answered(place, id, data, form) {
    var buttons = form ? form.querySelectorAll("button") : [];
    buttons.forEach(function (b) { b.disabled = true; });
    tell("");
    var answer = await ask("do=answer&id=" + encodeURIComponent(id), { method: "POST", body: data });
    buttons.forEach(function (b) { b.disabled = false; });
    if (answer.status === 422 && (answer.headers.get("Content-Type") || "").indexOf("text/html") === 0) {
      put(place, id, await answer.text());
      return false;
    }
    if (!answer.ok && answer.status !== 409) { await refused(answer); return false; }
    await load();
    return true;
  }

  // follow listens to what is said while it is said. Text has no place in the record yet: a piece says where it begins, and another attempt begins anew.
  function follow(v) {
    var id = v.turn.execution;
    if (streams[id]) return;
    var s = streams[id] = new EventSource(at("view=events&execution=" + encodeURIComponent(id)));
    s.addEventListener("text", function (event) {
      var p = JSON.parse(event.data), key = p.part, part = v.live[key];
      if (!part || part.attempt !== p.attempt || p.snapshot) {
        if (!part) v.order.push(key);
        part = v.live[key] = { attempt: p.attempt, text: "", length: 0 };
        if (p.snapshot || !p.offset) { part.text = p.text; }
      } else {
        part.text += p.text;
      }
      paint(v);
      down();
    });
    s.addEventListener("change", function () { load(); });
    s.onerror = function () {
      if (s.readyState !== EventSource.CLOSED) return; // it connects again by itself
      delete streams[id];
      wait(1500).then(load);
    };
  }

  var loading = null, again = false;
  function load() {
    if (loading) { again = true; return loading; }
    loading = read().finally(function () {
      loading = null;
      if (again) { again = false; load(); }
    });
    return loading;
  }
  async function read() {
    var answer = await ask("view=messages");
    if (!answer.ok) { await refused(answer); return; }
    var list = (await answer.json()).messages || [], low = main.scrollHeight - main.scrollTop - main.clientHeight < 120;
    plain = "";
    blocked = false;
    list.forEach(function (t) {
      view(t);
      (t.questions || []).forEach(function (q) {
        if (q.open) { blocked = true; if (q.plain) plain = q.id; }
      });
      if (t.state === "done" || t.state === "failed") {
        var s = streams[t.execution];
        if (s) { s.close(); delete streams[t.execution]; }
      }
    });
    fresh.hidden = list.length === 0;
    if (low) down();
  }

  async function send(id, text) {
    sending = true;
    compose.querySelector("button").disabled = true;
    sessionStorage.setItem(kept, JSON.stringify({ id: id, text: text }));
    var answer = await ask("do=send", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ id: id, text: text }) });
    sessionStorage.removeItem(kept);
    sending = false;
    compose.querySelector("button").disabled = false;
    if (!answer.ok) {
      if (!box.value) box.value = text;
      await refused(answer);
      return;
    }
    tell("");
    await load();
    down();
  }
  function newID() {
    return Array.from(crypto.getRandomValues(new Uint8Array(12)), function (b) { return b.toString(16).padStart(2, "0"); }).join("");
  }
  compose.addEventListener("submit", async function (event) {
    event.preventDefault();
    var text = box.value.trim();
    if (!text || sending) return;
    if (blocked && !plain) { tell(words.first, true); return; }
    box.value = "";
    if (plain) {
      var data = new FormData();
      data.append("text", text);
      var all = Object.values(turns).map(function (v) { return v.forms[plain]; }).filter(Boolean);
      if (!(await answered(all.length ? all[0].place : make("div"), plain, data, null)) && !box.value) box.value = text;
      return;
    }
    send(newID(), text);
  });
  box.addEventListener("keydown", function (event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); compose.requestSubmit(); }
  });
  fresh.addEventListener("click", async function () {
    var answer = await ask("do=new", { method: "POST" });
    if (answer.ok) location.reload(); else await refused(answer);
  });

  compose.hidden = false;
  load().then(function () {
    down();
    var left = sessionStorage.getItem(kept);
    if (left) { left = JSON.parse(left); send(left.id, left.text); }
  });
})();
