// The rows of a conversation on the page. Text of models gets here as text (textContent), or as HTML that the
// server has made and cleaned (markdown.py), parsed where no script can run.
(function () {
  "use strict";

  const halo = (window.halo = window.halo || {});

  halo.chatRows = function (list) {
    let growing = null; // {row, article, blocks: {index: {node, count}}}

    function find(id) {
      return list.querySelector('[data-row="' + CSS.escape(id) + '"]');
    }

    function put(frame) {
      const parsed = new DOMParser().parseFromString(frame.html, "text/html").body.firstElementChild;
      const article = document.importNode(parsed, true);
      const old = find(frame.row.id);
      const before = frame.before ? find(frame.before) : null;
      if (growing && growing.row === frame.row.id) growing = null;
      if (old) keepOpen(old, article);
      if (before) {
        if (old) old.remove();
        before.before(article);
      } else if (old) old.replaceWith(article);
      else list.append(article);
      return article;
    }

    // What somebody has unfolded stays so.
    function keepOpen(old, article) {
      const before = old.querySelectorAll("details");
      article.querySelectorAll("details").forEach((details, place) => {
        details.open = before[place] ? before[place].open : false;
      });
    }

    function discard(id) {
      const article = find(id);
      if (article) article.remove();
      if (growing && growing.row === id) growing = null;
    }

    function grow(id) {
      if (growing && growing.row === id) return growing;
      const article = element("article", "said said-assistant");
      article.dataset.row = id;
      article.dataset.growing = "";
      article.setAttribute("aria-live", "off"); // read out once, when it is finished
      article.setAttribute("aria-busy", "true");
      const header = element("header");
      header.append(element("b", "", "assistant"));
      article.append(header);
      const old = find(id);
      if (old) old.replaceWith(article);
      else list.append(article);
      growing = { row: id, article: article, blocks: new Map() };
      return growing;
    }

    // False: a piece is missing, and the view has to be asked for again.
    function extend(frame) {
      const row = grow(frame.row);
      let block = row.blocks.get(frame.block);
      if (!block) {
        if (frame.at !== 0) return false;
        block = { node: document.createTextNode(""), count: 0 };
        row.blocks.set(frame.block, block);
        if (frame.type === "chat:thinking") {
          const details = element("details");
          details.append(element("summary", "", "thinks"), element("pre"));
          details.lastChild.append(block.node);
          row.article.append(details);
        } else {
          const text = element("div", "said-plain");
          text.dir = "auto";
          text.append(block.node);
          row.article.append(text);
        }
      }
      if (frame.at > block.count) return false;
      if (frame.at < block.count) block.node.data = [...block.node.data].slice(0, frame.at).join("");
      block.node.appendData(frame.text);
      block.count = frame.at + [...frame.text].length;
      return true;
    }

    function toolCall(frame) {
      const row = grow(frame.row);
      if (row.blocks.has(frame.block)) return;
      const details = element("details");
      const name = element("summary", "", "uses ");
      name.append(element("bdi", "", frame.tool));
      details.append(name, element("pre", "", JSON.stringify(frame.arguments, null, 1)));
      row.blocks.set(frame.block, { details: details });
      row.article.append(details);
    }

    function toolResult(frame) {
      const block = growing && growing.row === frame.row ? growing.blocks.get(frame.block) : null;
      if (!block || !block.details) return;
      block.details.firstChild.firstChild.data = "used ";
      if (frame.interrupted) block.details.firstChild.append(" (interrupted)");
      else if (frame.is_error) block.details.firstChild.append(" (failed)");
      block.details.append(element("pre", "", frame.text));
    }

    // After a lost connection what grew is sent again from its beginning, if it still grows.
    function forgetGrowing() {
      if (growing) discard(growing.row);
    }

    // Nothing works any more: what still grows was cut off.
    function cutOff() {
      if (!growing) return;
      growing.article.removeAttribute("data-growing");
      growing.article.removeAttribute("aria-busy");
      growing.article.firstChild.append(" ", element("span", "page-bad", "interrupted"));
    }

    return {
      put: put,
      discard: discard,
      extend: extend,
      toolCall: toolCall,
      toolResult: toolResult,
      forgetGrowing: forgetGrowing,
      cutOff: cutOff,
      hasStamp: (stamp) => list.querySelector('[data-stamp="' + CSS.escape(stamp) + '"]') !== null,
    };
  };

  function element(name, classes, text) {
    const made = document.createElement(name);
    if (classes) made.className = classes;
    if (text !== undefined) made.textContent = text;
    return made;
  }
})();
