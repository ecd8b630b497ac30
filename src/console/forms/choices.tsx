/** A group of radio buttons with its problem. `name` is unique on the page. */
export function Choices(props: {
  name: string
  label: string
  options: readonly { value: string; label: string; hint?: string | undefined }[]
  value: string | undefined
  problem?: string | undefined
}) {
  const { name, label, options, value, problem } = props
  const problemId = `${name}-problem`
  return (
    <fieldset aria-describedby={problem === undefined ? undefined : problemId}>
      <legend>{label}</legend>
      {options.map((option, at) => (
        <label class="choice">
          <input
            type="radio"
            name={name}
            value={option.value}
            checked={option.value === value}
            autofocus={problem !== undefined && at === 0}
          />
          <span>
            {option.label}
            {option.hint === undefined ? null : <span class="hint"> {option.hint}</span>}
          </span>
        </label>
      ))}
      {problem === undefined ? null : (
        <span class="problem" id={problemId}>
          {problem}
        </span>
      )}
    </fieldset>
  )
}
