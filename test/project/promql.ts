/** A series of an expression, and the labels it is selected by. */
export type Selector = { metric: string; labels: string[] }

const GROUPING = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g
const WORDS = new Set(['and', 'or', 'unless', 'bool', 'offset'])

/**
 * Finds the series a PromQL expression selects, and the labels it groups by. Supports only the parts of the
 * language that the rules and panels of `ops` use.
 */
export function readExpression(expression: string): { selectors: Selector[]; groups: string[] } {
  const groups: string[] = []
  const text = expression.replace(/\[[^\]]*\]/g, '').replace(GROUPING, (_, labels: string) => {
    groups.push(...labels.split(',').map((label) => label.trim()))
    return ' '
  })
  const selectors = [
    ...text.matchAll(/([a-zA-Z_:][\w:]*)(\{(?:[^}"]|"[^"]*")*\})?(\s*\()?/g),
  ].flatMap(([, metric = '', braces = '', call]) => {
    if (call !== undefined || WORDS.has(metric)) return []
    const labels = [...braces.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(
      ([, label = '']) => label,
    )
    return [{ metric, labels }]
  })
  return { selectors, groups }
}
