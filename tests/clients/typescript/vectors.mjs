// What the client makes of clients/vectors.json: all outcomes, in order. Runs everywhere.

export function outcomesOf({ fill, messages }, { Prompt, messagesOf }) {
  const filled = fill.map(({ body, variables, values }) => {
    const prompt = new Prompt("ada/case", "1.0.0", { content: body, body, variables, parameters: {} });
    try {
      return { text: prompt.fill(values) };
    } catch (error) {
      return { error: error.name.replace(/(?!^)[A-Z]/g, "_$&").toLowerCase() };
    }
  });
  return { fill: filled, messages: messages.map(({ body }) => messagesOf(body)) };
}
