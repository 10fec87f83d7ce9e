// The colours of the light and the dark theme, with Okabe and Ito's for families of operators; Qt's palette and style
// sheet made of them; the icon; and the fonts: the system's, else those in the program, else what replaces them.
#include "views/look/theme.h"

#include <QApplication>
#include <QDir>
#include <QFontDatabase>
#include <QFontInfo>
#include <map>
#include <optional>

// Of a static library, resources are there once this has been called; the name is a macro of C.
static void add_look_resources() {
  Q_INIT_RESOURCE(look);
}

namespace partita::views {
namespace {

// In the light and in the dark theme. The colours of families are those of Okabe and Ito, which colour-blind people can
// tell apart; grey is for operators without a family.
struct Shades {
  QColor light, dark;
};
const Shades& okabe_ito(Family family) {
  static const std::map<Family, Shades> shades = {
      {Family::Input, {0x7a828e, 0x8b93a1}},
      {Family::Matmul, {0xd55e00, 0xd55e00}},
      {Family::Pointwise, {QColor(0x0072b2).lighter(100), QColor(0x0072b2).lighter(145)}},
      {Family::Reduction, {QColor(0x009e73).lighter(100), QColor(0x009e73).lighter(115)}},
      {Family::View, {0xa5abb5, 0x6b7380}},
      {Family::Index, {0xe69f00, 0xe69f00}},
      {Family::Random, {0xcc79a7, 0xcc79a7}},
      {Family::Collective, {0x56b4e9, 0x56b4e9}},
      {Family::Control, {0xb8ac00, 0xf0e442}},
      {Family::Other, {0x4d5561, 0xb7bdc7}},
  };
  return shades.at(family);
}

Theme theme_of(bool dark) {
  static const std::pair<QColor Theme::*, Shades> roles[] = {
      {&Theme::paper, {0xfbfbfa, 0x16181d}},
      {&Theme::panel, {0xf3f4f5, 0x1b1e24}},
      {&Theme::raised, {0xffffff, 0x22262e}},
      {&Theme::ink, {0x1f2328, 0xe6e8eb}},
      {&Theme::dim, {0x5f6773, 0x9aa3b0}},
      {&Theme::line, {0xd8dbe0, 0x333843}},
      {&Theme::accent, {0x0b62d0, 0x6cb0ff}},
      {&Theme::forward, {QColor(0, 114, 178, 10), QColor(86, 180, 233, 11)}},
      {&Theme::backward, {QColor(213, 94, 0, 10), QColor(230, 140, 60, 11)}},
      {&Theme::link, {0xa9b0bb, 0x5a6272}},
      {&Theme::far_link, {0x3a6ea5, 0x8ab4e8}},
      {&Theme::input_link, {0x0b62d0, 0x6cb0ff}},
      {&Theme::output_link, {0xb34700, 0xff9d5c}},
      {&Theme::added, {0x1a7f37, 0x57c26b}},
      {&Theme::removed, {0xb3261e, 0xff7b72}},
      {&Theme::changed, {0x8a5a00, 0xe3b341}},
      {&Theme::good, {0x1a7f37, 0x57c26b}},
      {&Theme::warn, {0x8a5a00, 0xe3b341}},
      {&Theme::bad, {0xb3261e, 0xff7b72}},
      {&Theme::keyword, {0x7a3e9d, 0xd2a8ff}},
      {&Theme::string, {0x1a6b3c, 0x8ddb9c}},
      {&Theme::number, {0x9a4a00, 0xffb37a}},
      {&Theme::comment, {0x6a727d, 0x8b949e}},
      {&Theme::annotation, {0x5b6a7d, 0x8fa3bd}},
      {&Theme::current_line, {0xe3edfa, 0x243349}},
      {&Theme::hover, {0xe9ebee, 0x2a2f38}},
      {&Theme::shadow, {QColor(0, 0, 0, 90), QColor(0, 0, 0, 90)}},
      {&Theme::low, {0xbfd5ec, 0x26415f}},
      {&Theme::middle, {0x8fa0a8, 0x7a7f86}},
      {&Theme::high, {0xb37400, 0xfde737}},
      {&Theme::below, {0x0060a0, 0x56b4e9}},
      {&Theme::calm, {0xf4f4f2, 0x262a31}},
      {&Theme::above, {0xb85200, 0xf0a040}},
      {&Theme::not_a_number, {0xa8377e, 0xe58fc0}},
  };
  Theme theme;
  theme.dark = dark;
  for (const auto& [role, shade] : roles) theme.*role = dark ? shade.dark : shade.light;
  return theme;
}

struct FontFamily {
  std::initializer_list<const char*> names;  ///< the first one that there is
  const char* carried;                       ///< its folder in the program
};
constexpr FontFamily kInterface = {{"Inter", "Inter Display"}, ":/fonts/interface"};
constexpr FontFamily kCode = {{"JetBrains Mono"}, ":/fonts/code"};

std::optional<QFont> installed(const FontFamily& family) {
  for (const char* name : family.names)
    if (QFontDatabase::hasFamily(name)) {
      QFont font(name);
      font.setPointSizeF(9.5);
      return font;
    }
  return std::nullopt;
}

QFont font_of(const FontFamily& family, QFontDatabase::SystemFont fallback) {
  if (const auto font = installed(family)) return *font;
  add_look_resources();
  const QDir carried(family.carried);
  for (const QString& file : carried.entryList(QDir::Files)) QFontDatabase::addApplicationFont(carried.filePath(file));
  return installed(family).value_or(QFontDatabase::systemFont(fallback));
}

const Theme* current_theme = &Theme::light();

}  // namespace

QColor Theme::family(Family family) const {
  const Shades& shades = okabe_ito(family);
  return dark ? shades.dark : shades.light;
}

const Theme& Theme::light() {
  static const Theme theme = theme_of(false);
  return theme;
}

const Theme& Theme::night() {
  static const Theme theme = theme_of(true);
  return theme;
}

const Theme& Theme::current() {
  return *current_theme;
}

void Theme::set_current(const Theme& theme) {
  current_theme = &theme;
}

QPalette Theme::palette() const {
  const std::pair<QColor, std::vector<QPalette::ColorRole>> roles[] = {
      {panel, {QPalette::Window, QPalette::AlternateBase, QPalette::Button, QPalette::Midlight}},
      {raised, {QPalette::Base, QPalette::ToolTipBase, QPalette::Light}},
      {ink,
       {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::ToolTipText, QPalette::HighlightedText}},
      {dim, {QPalette::PlaceholderText}},
      {bad, {QPalette::BrightText}},
      {current_line, {QPalette::Highlight}},
      {accent, {QPalette::Link}},
      {line, {QPalette::Mid, QPalette::Dark}},
      {dark ? QColor(0, 0, 0) : line, {QPalette::Shadow}}};
  QPalette p;
  for (const auto& [colour, of] : roles)
    for (const QPalette::ColorRole role : of) p.setColor(role, colour);
  for (auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, dim);
  return p;
}

QString Theme::style_sheet() const {
  // A widget with a style sheet ignores the palette, so that the colours of plain widgets are repeated here.
  QString sheet = R"(
    QWidget { color: @ink; }
    QWidget:disabled { color: @dim; }
    QMainWindow, QDialog, QDockWidget, QMenuBar, QStatusBar, QTabWidget { background: @panel; }
    QMenuBar::item { background: transparent; padding: 4px 8px; border-radius: 4px; }
    QMenuBar::item:selected { background: @current; }
    QTextBrowser, QPlainTextEdit, QAbstractScrollArea { background: @paper; border: none; }
    QTabWidget::pane { border: none; border-top: 1px solid @line; }
    QStackedWidget { background: @paper; }
    QMainWindow::separator { background: @line; width: 1px; height: 1px; }
    QDockWidget { titlebar-close-icon: none; titlebar-normal-icon: none; }
    QToolBar { border: none; border-bottom: 1px solid @line; background: @panel; padding: 4px 8px; spacing: 4px; }
    QStatusBar { border-top: 1px solid @line; background: @panel; }
    QStatusBar::item { border: none; }
    QToolButton { border: 1px solid transparent; border-radius: 4px; padding: 4px 8px; }
    QToolBar QToolButton { padding: 4px; }
    QToolButton::menu-indicator { image: none; }
    QToolButton:hover, QPushButton:hover { background: @hover; }
    QToolButton:pressed, QToolButton:checked, QPushButton:checked { background: @current; }
    QToolButton:focus, QPushButton:focus { border: 1px solid @accent; }
    QPushButton { border: 1px solid @line; border-radius: 4px; padding: 4px 12px; background: @raised; }
    QPushButton:checked { background: @current; }
    QPushButton:disabled { color: @dim; background: @panel; }
    QLineEdit, QComboBox, QSpinBox, QDoubleSpinBox { border: 1px solid @line; border-radius: 4px; padding: 3px 8px; background: @raised; }
    QComboBox { padding-right: 22px; }
    QLineEdit:focus, QComboBox:focus { border: 1px solid @accent; }
    QComboBox::drop-down { border: none; width: 0; }
    QTreeView, QTableView, QListView { border: none; background: @raised; alternate-background-color: @panel;
      selection-background-color: @current; selection-color: @ink; outline: none; }
    QTreeView::item, QListView::item { padding: 2px 0; }
    QTableView::item { padding: 0 8px; border: none; }
    QTreeView::item:selected, QListView::item:selected { background: @current; color: @ink; }
    QTableView::item:selected { background: @current; }
    QHeaderView, QTableCornerButton::section { background: @panel; border: none; }
    QHeaderView::section { background: @panel; color: @dim; border: none; border-bottom: 1px solid @line; padding: 4px 8px; }
    QHeaderView::up-arrow, QHeaderView::down-arrow { subcontrol-origin: margin; subcontrol-position: top center; width: 8px; height: 8px; }
    QTabBar { background: transparent; qproperty-drawBase: 0; }
    QTabBar::tab { background: transparent; color: @dim; padding: 5px 12px; border: none; border-bottom: 2px solid transparent; }
    QTabBar::tab:selected { color: @ink; border-bottom: 2px solid @accent; }
    QTabBar::tab:hover { color: @ink; }
    QMenu { background: @raised; border: 1px solid @line; padding: 4px; }
    QMenu::item { padding: 4px 24px 4px 12px; border-radius: 4px; }
    QMenu::item:selected { background: @current; }
    QMenu::item:disabled { color: @dim; background: transparent; }
    QMenu::separator { height: 1px; background: @line; margin: 4px 8px; }
    QAbstractScrollArea::corner { background: transparent; border: none; }
    QScrollBar:vertical { background: transparent; width: 10px; margin: 0; }
    QScrollBar:horizontal { background: transparent; height: 10px; margin: 0; }
    QScrollBar::handle { background: @line; border-radius: 5px; min-height: 24px; min-width: 24px; }
    QScrollBar::handle:hover { background: @dim; }
    QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
    QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
    QSplitter::handle { background: @line; }
    QSplitter::handle:horizontal { width: 1px; }
    QSplitter::handle:vertical { height: 1px; }
    QToolTip { background: @raised; color: @ink; border: 1px solid @line; padding: 4px; }
    QSlider::groove:horizontal { height: 4px; background: @line; border-radius: 2px; }
    QSlider::sub-page:horizontal { background: @accent; border-radius: 2px; }
    QSlider::handle:horizontal { background: @raised; border: 2px solid @accent; width: 10px; margin: -5px 0; border-radius: 7px; }
    QProgressBar { border: none; background: @line; border-radius: 2px; max-height: 4px; }
    QProgressBar::chunk { background: @accent; border-radius: 2px; }
    #pictureBar { background: @panel; border-top: 1px solid @line; }
    #problemBar { background: @raised; border-top: 1px solid @line; border-bottom: 1px solid @line; }
    #heading { font-weight: 600; }
    #dim { color: @dim; }
    #error { color: @bad; }
    #panelTitle { color: @dim; font-weight: 600; }
    #card { background: @raised; border: 1px solid @line; border-radius: 6px; }
    #palette { background: @raised; border: 1px solid @line; border-radius: 8px; }
  )";
  const std::pair<const char*, QColor> names[] = {
      {"@line", line}, {"@paper", paper},   {"@panel", panel},          {"@raised", raised}, {"@ink", ink},
      {"@dim", dim},   {"@accent", accent}, {"@current", current_line}, {"@hover", hover},   {"@bad", bad},
  };
  for (const auto& [name, colour] : names) sheet.replace(name, colour.name());
  return sheet;
}

const Theme& resolve_theme(ThemeChoice choice) {
  if (choice == ThemeChoice::Light) return Theme::light();
  if (choice == ThemeChoice::Dark) return Theme::night();
  return QApplication::palette().color(QPalette::Window).lightness() < 128 ? Theme::night() : Theme::light();
}

QFont interface_font() {
  return font_of(kInterface, QFontDatabase::GeneralFont);
}

QFont code_font() {
  QFont font = font_of(kCode, QFontDatabase::FixedFont);
  font.setStyleHint(QFont::Monospace);
  font.setFixedPitch(true);
  return font;
}

QIcon program_icon() {
  add_look_resources();
  return QIcon(":/icons/partita.svg");
}

QStringList missing_fonts() {
  QStringList missing;
  const auto check = [&](const QString& what, const FontFamily& family, const QFont& used) {
    if (installed(family)) return;
    missing << QObject::tr("The font %1 is not installed; %2 is in %3")
                   .arg(QString(*family.names.begin()), what, QFontInfo(used).family());
  };
  check(QObject::tr("the interface"), kInterface, interface_font());
  check(QObject::tr("code"), kCode, code_font());
  return missing;
}

}  // namespace partita::views
