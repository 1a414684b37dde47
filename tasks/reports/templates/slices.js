/* The tables of slices: order by a metric, the worst first, and the rows of a slice. */

for (const table of document.querySelectorAll("table.slices")) {
  const sliceHeads = [...table.tHead.rows[0].cells].filter((head) => head.querySelector("button"));
  const lines = [...table.tBodies[0].rows];
  sliceHeads.forEach((head, number) => head.querySelector("button").addEventListener("click", () => {
    const descending = head.getAttribute("aria-sort") === "ascending";
    const rank = (line) => Number(line.dataset.ranks.split(" ")[number]);
    table.tBodies[0].replaceChildren(...lines.sort((one, other) => (descending ? rank(other) - rank(one) : rank(one) - rank(other))));
    for (const other of sliceHeads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  }));
}

for (const link of document.querySelectorAll("a[data-slice]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    resetFilters();
    $("slice").value = link.dataset.slice;
    limit = PAGE;
    apply();
    $("rows").scrollIntoView();
    $("slice").focus({ preventScroll: true });
  });
}
