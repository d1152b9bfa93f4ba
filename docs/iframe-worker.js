// Pages that were opened from a folder may start no workers. A frame that nobody sees takes the place of one, so that the
// search answers there too.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    #messages = [];

    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      const script = document.createElement("script");
      script.src = url;
      frame.hidden = true;
      frame.srcdoc = script.outerHTML.replace("<script", "<script defer");
      frame.addEventListener("load", () => this.#start(frame.contentWindow));
      document.body.append(frame);
    }

    postMessage(data) {
      this.#messages.push(data);
    }

    #start(inside) {
      // What the script answers goes to us, and what it is told comes from us.
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.postMessage = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));
      this.#messages.splice(0).forEach(this.postMessage);
    }
  };
  window.Worker = window.IFrameWorker;
}
