{"event":"before","session":"p","call_id":"x","tool":"Bash","input":{"command":"npm ci"}}
