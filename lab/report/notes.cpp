#include "report/notes.h"

#include <cmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace sgdph::lab::report {
namespace {

constexpr int kHighestHeading = 3;
constexpr int kLowestHeading = 6;

template <auto function>
struct Release {
  template <class T>
  void operator()(T* object) const {
    function(object);
  }
};
using Node = std::unique_ptr<cmark_node, Release<cmark_node_free>>;
using Iterator = std::unique_ptr<cmark_iter, Release<cmark_iter_free>>;
using Text = std::unique_ptr<char, Release<std::free>>;

void put_in_place(cmark_node* old, cmark_node* other) {
  cmark_node_replace(old, other);
  cmark_node_free(old);
}

cmark_node* text_node(const char* literal) {
  auto* node = cmark_node_new(CMARK_NODE_TEXT);
  cmark_node_set_literal(node, literal);
  return node;
}

cmark_node* link_to(cmark_node* image) {
  auto* link = cmark_node_new(CMARK_NODE_LINK);
  cmark_node_set_url(link, cmark_node_get_url(image));
  while (auto* child = cmark_node_first_child(image)) cmark_node_append_child(link, child);
  return link;
}

/// A node may be replaced when the iterator leaves it, and one without children when it comes to it.
void tame(cmark_node* node, cmark_event_type event) {
  switch (cmark_node_get_type(node)) {
    case CMARK_NODE_HTML_INLINE: return put_in_place(node, text_node(cmark_node_get_literal(node)));
    case CMARK_NODE_HTML_BLOCK: {
      auto* paragraph = cmark_node_new(CMARK_NODE_PARAGRAPH);
      cmark_node_append_child(paragraph, text_node(cmark_node_get_literal(node)));
      return put_in_place(node, paragraph);
    }
    case CMARK_NODE_IMAGE:
      if (event == CMARK_EVENT_EXIT) put_in_place(node, link_to(node));
      return;
    case CMARK_NODE_HEADING:
      if (event == CMARK_EVENT_EXIT) {
        const auto level = cmark_node_get_heading_level(node) + 1;
        cmark_node_set_heading_level(node, std::clamp(level, kHighestHeading, kLowestHeading));
      }
      return;
    default: return;
  }
}

}  // namespace

std::string notes_html(const std::string& text) {
  const Node document(cmark_parse_document(text.data(), text.size(), CMARK_OPT_DEFAULT));
  const Iterator at(cmark_iter_new(document.get()));
  for (auto event = cmark_iter_next(at.get()); event != CMARK_EVENT_DONE; event = cmark_iter_next(at.get())) {
    tame(cmark_iter_get_node(at.get()), event);
  }
  const Text html(cmark_render_html(document.get(), CMARK_OPT_NOBREAKS));
  return html.get();
}

}  // namespace sgdph::lab::report
