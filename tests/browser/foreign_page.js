async ({ root, bodies, reads, sockets, event }) => {
  const read = [];
  const note = (what, content) => read.push(`${what}: ${content}`);
  const limited = (promise, seconds) => Promise.race([promise, new Promise((done) => setTimeout(done, 1000 * seconds))]);

  async function send(what, url, options) {
    try {
      const answer = await fetch(url, { credentials: "include", ...options });
      if (answer.type !== "opaque") note(what, `${answer.status} ${await answer.text()}`);
    } catch {} // the browser lets the page read nothing
  }

  function load(tag, attribute, url, more = {}) {
    const element = Object.assign(document.createElement(tag), more);
    const loaded = new Promise((done) => {
      element.onload = () => {
        try {
          if (tag !== "iframe") note(tag, "loaded");
          else if (element.contentDocument) note(tag, element.contentDocument.body.textContent);
        } catch {} // a frame of another origin
        done();
      };
      element.onerror = done;
    });
    element[attribute] = url;
    document.body.append(element);
    return limited(loaded, 10);
  }

  function submit(url, body, enctype, method) {
    const name = `frame${Math.random()}`;
    const frame = Object.assign(document.createElement("iframe"), { name });
    document.body.append(frame);
    const form = Object.assign(document.createElement("form"), { action: url, method, enctype, target: name });
    const field = document.createElement("input"); // `name=value` is the JSON, followed by a field of no meaning
    Object.assign(field, { name: `${body.slice(0, -1)},"ignored":"`, value: '"}' });
    form.append(field);
    document.body.append(form);
    const loaded = new Promise((done) => (frame.onload = done));
    form.submit();
    return limited(loaded, 10);
  }

  for (const { path, body } of bodies) {
    const url = root + path;
    const parts = new FormData();
    parts.append("body", body);
    const contents = [
      ["untyped", new Blob([body])],
      ["plain", new Blob([body], { type: "text/plain" })],
      ["json", new Blob([body], { type: "application/json" })],
      ["protobuf", new Blob([body], { type: "application/x-protobuf" })],
      ["text", body],
      ["parameters", new URLSearchParams({ body })],
      ["parts", parts],
    ];
    for (const [kind, content] of contents) {
      for (const mode of ["no-cors", "cors"]) await send(`${mode} ${kind} ${path}`, url, { method: "POST", mode, body: content });
      try {
        navigator.sendBeacon(url, content);
      } catch {} // a type that needs consent
    }
    const headers = { "Content-Type": "application/json" };
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      await send(`${method} ${path}`, url, { method, body, headers });
      await send(`${method} ${path}`, url, { method });
    }
    await send(`empty ${path}`, url, { method: "POST", mode: "no-cors" });
    for (const enctype of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      await submit(url, body, enctype, "post");
    }
    await submit(url, body, "application/x-www-form-urlencoded", "get");
  }

  for (const path of reads) {
    const url = root + path;
    for (const mode of ["no-cors", "cors"]) await send(`${mode} GET ${path}`, url, { mode });
    await load("img", "src", url);
    await load("script", "src", url);
    await load("link", "href", url, { rel: "stylesheet" });
    await load("iframe", "src", url);
    await load("object", "data", url);
    await limited(
      new Promise((done) => {
        const source = new EventSource(url);
        source.onopen = () => note("events", "open");
        source.onerror = () => (source.close(), done());
      }),
      10,
    );
  }

  for (const path of sockets) {
    for (const protocols of [[], ["prefect"]]) {
      await limited(
        new Promise((done) => {
          const socket = new WebSocket(root.replace("http", "ws") + path, protocols);
          socket.onopen = () => {
            note(`socket ${path}`, "open");
            for (const message of [{ type: "auth", token: null }, { type: "filter", filter: {} }, event]) {
              socket.send(JSON.stringify(message));
            }
          };
          socket.onmessage = ({ data }) => note(`socket ${path}`, data);
          socket.onclose = done;
        }),
        5,
      );
    }
  }
  return read;
}
